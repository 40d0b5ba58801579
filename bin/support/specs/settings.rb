# frozen_string_literal: true

require "etc"

module Specs
  # What the environment says, read once: a wrong value is said before anything runs.
  module Settings
    # @return [Integer, nil] the number that the variable names
    def self.number(variable, unit)
      given = ENV.fetch(variable, "")
      return if given.empty?

      number = Integer(given, 10, exception: false)
      number&.positive? ? number : abort("#{variable} must be a number of #{unit}, not '#{given}'")
    end

    # Processes that run at the same time. Specs wait a lot, so there is one more than there are cores.
    WORKERS = number("RPERF_TEST_WORKERS", "processes") || (Etc.nprocessors + 1).clamp(2, 8)
    # Seconds that a process may take: a VM that hangs must not keep all others waiting. Tortures are long with --long.
    LIMIT = number("RPERF_TEST_LIMIT", "seconds") || (ENV["RPERF_LONG"] == "1" ? 4 * 3600 : 600)
  end
end
