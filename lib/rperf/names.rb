# frozen_string_literal: true

module Rperf
  # What others call this project by, in one place: rperf.gemspec, bin/ and specs read it here. CONTRIBUTING.md says
  # what else a change of them needs. Any Ruby may load this file: no syntax newer than Ruby 2.5.
  # @private
  module Names
    # The gem. On RubyGems "rperf" is the original, another project.
    GEM = "rperf"
    # The command that the gem installs: exe/COMMAND.
    COMMAND = "rperf"
    # What programs require: lib/ENTRY.rb.
    ENTRY = "rperf"
    # The original's gem. Its module is Rperf, too.
    ORIGINAL = "rperf"
  end
end
