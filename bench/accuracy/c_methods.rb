# frozen_string_literal: true

require_relative "../support/engines"
require_relative "../support/shares"
require_relative "loops/c_calls"
require_relative "loops/hash_sort_by"
require_relative "loops/nested_calls"
require_relative "loops/ruby_loop"
require_relative "scenario"

module Accuracy
  # Hot loops over C methods, with clocks around each call, interpreted and compiled:
  # compiled code has no safepoint where a C method ends.
  #
  # A loop's parts (loops/) come in rounds, each in an order of its own. What the loop
  # itself does, the clocks included, is one method more: "other". The figures:
  #
  # - sum of points: of all methods, by how much the share is off; at most 5 are good.
  # - by chance: what that would be on average if the samples were nothing but a draw of
  #   as many instants of the run, each with the right stack.
  # - worst C method: the largest of those of 50 us a call and more; good are 2.
  # - total: by how much the sum of all weights is off; good is 1 %.
  class CMethods < Scenario
    OTHER = "other"
    WARM_UP_ROUNDS = 60
    LONG_CALL = 50_000

    # The parts of a round: class, how often, arguments. Those of a loop over one method
    # take about 1/4 of the time each.
    RUBY_LOOP = [Loops::RubyLoop, 4].freeze
    HASH_SORT_BY = [[Loops::HashSortBy, 4], RUBY_LOOP].freeze
    NESTED = [[Loops::NestedCalls, 1], RUBY_LOOP].freeze

    # @return [CMethods] the loop over a key of CCalls::KINDS
    def self.calls_of(kind)
      new([[Loops::CCalls, 4, kind, :short], [Loops::CCalls, 5, kind, :medium], [Loops::CCalls, 1, kind, :long],
           RUBY_LOOP])
    end

    # @return [CMethods] the loop over all, at one size each
    def self.mixed
      sizes = Loops::CCalls::SIZES.keys.cycle
      calls = Loops::CCalls::KINDS.keys.map { |kind| [Loops::CCalls, 2, kind, sizes.next] }
      new([*calls, *HASH_SORT_BY, *NESTED].uniq)
    end

    def initialize(parts)
      super()
      @parts = parts
    end

    def engines = Bench::Engines::NAMES
    def frequencies = [1000]

    # @return [Hash{String => Float, nil}] the figures
    def call(measurement)
      parts = @parts.to_h { |type, times, *arguments| [type.new(measurement, *arguments), times] }
      round = parts.flat_map { |part, times| [part] * times }
      WARM_UP_ROUNDS.times { round.each(&:run) }
      parts.each_key(&:start_over)
      profile = measurement.profile do
        measurement.until_over do
          round.shuffle!(random: measurement.random)
          round.each(&:run)
        end
      end
      figures(measurement, parts.keys, profile)
    end

    private

    def figures(measurement, parts, profile)
      truth = truth(measurement, parts)
      measured = by_key(profile, parts)
      points = Bench::Shares.points(truth, measured)
      calls = parts.map(&:c_calls).reduce(:merge)
      measurement.details(truth, measured, calls)
      long = calls.keys.select { |key| truth[key] >= calls[key] * LONG_CALL }
      {
        "sum of points" => points.values.sum(&:abs),
        "sum of points by chance" => Bench::Shares.by_chance(truth, profile[:sampling_count]).values.sum,
        "worst C method, points" => points.values_at(*long).map(&:abs).max,
        "total off %" => ((measured.values.sum.fdiv(measurement.total_truth) - 1) * 100).abs
      }
    end

    # Outside of its parts, the loop waits for a CPU as often as in them.
    def truth(measurement, parts)
      durations = parts.flat_map(&:durations)
      kept = durations.sum(&:sum).fdiv(durations.sum(&:elapsed))
      truth = parts.map(&:truth).reduce(:merge)
      truth.merge(OTHER => (measurement.total_elapsed * kept) - truth.values.sum)
    end

    def by_key(profile, parts)
      by_wrapper = parts.to_h { |part| [part.wrapper, part] }
      profile[:samples].each_with_object(Hash.new(0)) do |(frames, weight), sums|
        labels = frames.map(&:last)
        part = labels.lazy.filter_map { |label| by_wrapper[label[/\w+\z/]] }.first
        _, key = part&.owners&.find { |label, _| labels.include?(label) }
        sums[key || OTHER] += weight
      end
    end
  end
end
