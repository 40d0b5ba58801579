# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/shares"
require_relative "scenario"

module Accuracy
  # Methods of known shares in several Ractors at the same time. Each Ractor says what its calls took, by the clock of
  # the mode. The figure is by how many points the worst method's share of all Ractors' time is off.
  class Ractors < Scenario
    PARTS = { "six_tenths" => 0.6, "three_tenths" => 0.3, "one_tenth" => 0.1 }.freeze
    TURN = 4_000_000

    # What runs in the Ractors: they may not touch the scenario.
    module Body
      module_function

      def six_tenths(clock) = spin(TURN * 0.6, clock)
      def three_tenths(clock) = spin(TURN * 0.3, clock)
      def one_tenth(clock) = spin(TURN * 0.1, clock)

      def spin(length, clock)
        ends = Bench::Clock.public_send(clock) + length
        nil while Bench::Clock.public_send(clock) < ends
      end

      # @return [Hash{String => Integer}] nanoseconds of each method
      def run(clock, seconds)
        truth = PARTS.transform_values { 0 }
        ends = Bench::Clock.wall + (seconds * 1e9)
        while Bench::Clock.wall < ends
          PARTS.each_key do |name|
            began = Bench::Clock.public_send(clock)
            public_send(name, clock)
            truth[name] += Bench::Clock.public_send(clock) - began
          end
        end
        truth
      end
    end

    # @param count [Integer] Ractors
    def initialize(count)
      super()
      @count = count
    end

    def engines = Bench::Engines::NAMES
    def frequencies = [1000]
    def bounds = { "points" => (..3) }

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      clock = measurement.mode == :cpu ? :thread_cpu : :wall
      truths = nil
      profile = measurement.profile do
        ractors = Array.new(@count) { Ractor.new(clock, measurement.seconds) { |*arguments| Body.run(*arguments) } }
        truths = ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      end
      { "points" => worst(truths, measured(profile)) }
    end

    private

    # @return [Array<Hash{String => Integer}>] nanoseconds by method, of each Ractor
    def measured(profile)
      rows = profile[:samples].group_by { |row| profile[:label_sets][row[3]][:"%ractor"] }
      rows.except(nil, "other").sort_by { |name,| Integer(name) }.map do |_, samples|
        Bench::Shares.by_method({ samples: }, PARTS.keys)
      end
    end

    def worst(truths, measured)
      return 100.0 if measured.size != truths.size

      truth, found = [truths, measured].map do |all|
        sums = all.reduce { |sum, one| sum.merge(one) { |_, before, more| before + more } }
        PARTS.keys.map { |name| sums[name] * 100.0 / sums.values.sum }
      end
      truth.zip(found).map { |one, other| (one - other).abs }.max
    end
  end
end
