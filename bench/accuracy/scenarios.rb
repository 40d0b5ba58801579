# frozen_string_literal: true

require_relative "call_ratios"
require_relative "known_durations"
require_relative "locked"
require_relative "short_calls"
require_relative "slices"

module Accuracy
  # By name. Each has a unit, says whether it needs the C part, and gives its
  # figure for a Measurement.
  SCENARIOS = {
    "ruby-busy" => KnownDurations.new(%w[ruby_busy]),
    "c-busy" => KnownDurations.new(%w[c_busy]),
    "c-sleep-gvl" => KnownDurations.new(%w[c_sleep_gvl]),
    "c-sleep-nogvl" => KnownDurations.new(%w[c_sleep_nogvl]),
    "mixed" => KnownDurations.new(KnownDurations::BODIES.keys),
    "call-ratios" => CallRatios.new,
    "slices-300us" => Slices.new(300),
    "slices-3ms" => Slices.new(3000),
    "locked" => Locked.new,
    "short-calls" => ShortCalls.new
  }.freeze
end
