# frozen_string_literal: true

# Sections of a deferred session.
module Rperf
  class << self
    # Profiles the block in a session that was started with `defer: true`. Time counts,
    # that of all threads, while at least one such block runs; in between the program
    # runs as if it were not profiled. In other sessions it only puts labels on.
    #
    # Outside of the main Ractor it does nothing but run the block.
    #
    # @param labels [Hash{Symbol, String => Object}] for the block's samples, as for {Rperf.label}
    # @return the block's value
    # @raise [ArgumentError] without a block
    # @raise [Rperf::Error] if profiling is off
    # @example
    #   Rperf.start(defer: true, mode: :wall)
    #   Rperf.profile(endpoint: "/users") { handle_request }
    def profile(**labels, &)
      raise ArgumentError, "Rperf.profile needs a block" unless block_given?
      return yield unless Ractor.main?
      raise Error, "profiling is off; call Rperf.start (with defer: true) first" unless Native.running?

      Sections.run(labels, &)
    end
  end

  # What {Rperf.profile} does, for those that must not fail: middleware.
  module Sections
    # Runs the block as a section, or just so if profiling is off.
    def self.run(labels)
      section = []
      labelled = false
      unless labels.empty? || !Native.running?
        outer = Native.label_set
        labelled = true
        Native.label_set = Native.new_label_set(outer, labels)
      end
      Native.enter_section(section)
      yield
    ensure
      # One call of C: no interrupt can come before it has done its work.
      Native.leave_section(section, labelled, outer)
    end
  end
  private_constant :Sections
end
