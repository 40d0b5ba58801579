# frozen_string_literal: true

require_relative "../support/clock"
require_relative "scenario"

module Accuracy
  # A program in step with a 1 ms clock: the first 44 us of every millisecond are
  # one method, the rest is another. A timer without dither misses the first one,
  # or sees nothing else. The figure is by how many points the shares are off.
  class Locked < Scenario
    PERIOD = 1_000_000
    FIRST = 44_000
    NAMES = %w[first_section second_section].freeze

    def first_section(ends) = spin_until(ends)
    def second_section(ends) = spin_until(ends)

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      profile = measurement.profile do
        measurement.until_over do
          started = Bench::Clock.wall
          boundary = started - (started % PERIOD)
          measurement.time("first_section") { first_section(boundary + FIRST) }
          measurement.time("second_section") { second_section(boundary + PERIOD) }
        end
      end
      { "points" => measurement.points(profile, NAMES) }
    end

    private

    def spin_until(ends)
      nil while Bench::Clock.wall < ends
    end
  end
end
