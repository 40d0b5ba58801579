# frozen_string_literal: true

# Minitest's own way to options: it loads this file, and calls both methods. Nothing else of rperf is loaded unless it
# is asked for.
module Minitest
  # Adds the option `--rperf`.
  def self.plugin_rperf_options(parser, options)
    parser.on("--rperf", "Name the tests in the profile that rperf takes") { options[:rperf] = true }
  end

  # Before the first test.
  def self.plugin_rperf_init(options)
    require "rperf/minitest" if options[:rperf]
  end
end
