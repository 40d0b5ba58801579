# frozen_string_literal: true

require_relative "../support/clock"

module Accuracy
  # Short slices of running between sleeps of 5 ms: on one CPU this shows whether
  # the timer's thread gets to run in time. The figure is by how many points the
  # share of the slices is off.
  class Slices
    PAUSE = 0.005

    # @param microseconds [Integer] length of a slice
    def initialize(microseconds)
      @length_ns = microseconds * 1000
    end

    def unit = "points"
    def native? = false

    def short_slice(ends)
      nil while Bench::Clock.wall < ends
    end

    # @return [Float] the figure
    def call(measurement)
      profile = measurement.profile do
        measurement.until_over do
          measurement.time("short_slice") { short_slice(Bench::Clock.wall + @length_ns) }
          sleep PAUSE
        end
      end
      measurement.points(profile, ["short_slice"])
    end
  end
end
