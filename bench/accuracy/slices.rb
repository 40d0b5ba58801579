# frozen_string_literal: true

require_relative "../support/clock"
require_relative "scenario"

module Accuracy
  # Short slices of running between sleeps of 5 ms: on one CPU this shows whether
  # the timer's thread gets to run in time. The figure is by how many points the
  # share of the slices is off.
  class Slices < Scenario
    PAUSE = 0.005

    # @param microseconds [Integer] length of a slice
    def initialize(microseconds)
      super()
      @length_ns = microseconds * 1000
    end

    def short_slice(ends)
      nil while Bench::Clock.wall < ends
    end

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      profile = measurement.profile do
        measurement.until_over do
          measurement.time("short_slice") { short_slice(Bench::Clock.wall + @length_ns) }
          sleep PAUSE
        end
      end
      { "points" => measurement.points(profile, ["short_slice"]) }
    end
  end
end
