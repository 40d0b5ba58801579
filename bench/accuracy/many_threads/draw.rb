# frozen_string_literal: true

require_relative "../../support/shares"
require_relative "../scenario"

module Accuracy
  class ManyThreads < Scenario
    # A profile by chance alone: in each thread a sample comes after a random gap, with the gap as its weight and a
    # method drawn by the thread's true shares. What is left at the end goes to the thread's last sample, as in a
    # profile.
    class Draw
      ROUNDS = 100

      # @param by_thread [Array<Hash{String => Integer}>] each thread's times by method
      # @param gap [Float] the mean gap
      # @param memoryless [Boolean] whether gaps are memoryless; else they are even, of half to one and a half
      def initialize(by_thread, gap, memoryless:)
        @by_thread = by_thread.reject { |times| times.values.sum.zero? }
        @gap = gap
        @memoryless = memoryless
      end

      # @param truth [Hash{String => Integer}] the sums of the threads
      # @return [Float] by how many points the worst share is off, on average
      def worst_points(truth, random)
        Array.new(ROUNDS) do
          drawn = truth.transform_values { 0 }
          @by_thread.each { |times| add(times, drawn, random) }
          Bench::Shares.points(truth, drawn).values.map(&:abs).max
        end.sum / ROUNDS
      end

      private

      def add(times, drawn, random)
        left = times.values.sum
        while (gap = next_gap(random)) < left
          last = some_method(times, random)
          drawn[last] += gap
          left -= gap
        end
        drawn[last || some_method(times, random)] += left
      end

      def next_gap(random) = @gap * (@memoryless ? -Math.log(1 - random.rand) : 0.5 + random.rand)

      def some_method(times, random)
        at = random.rand * times.values.sum
        times.each { |name, time| return name if (at -= time).negative? }
        times.keys.last
      end
    end
  end
end
