# frozen_string_literal: true

require_relative "../support/engines"
require_relative "../support/shares"
require_relative "scenario"

module Accuracy
  # Shares of a program's parts, against those that they have when no profiler is on, by
  # the program's own clocks: what a profile is for. The same rounds run without profiling,
  # then with it, then without it again. The figures:
  #
  # - worst share: by how many points the profile is off where it is off most.
  # - of which changed: by how many points the parts' shares differ under the profiler, by
  #   the same clocks: profiling may make some of the program's code slower, and not other
  #   code. On a busy machine they differ without it as well.
  # - of which misread: by how many points the profile is off those shares.
  # - by chance: what the largest share would be off on average if the samples were a draw.
  class Unprofiled < Scenario
    OTHER = "other"
    WARM_UP_ROUNDS = 60
    POINTS = 1.5

    def engines = Bench::Engines::NAMES
    def frequencies = [1000]
    def bounds = { "worst share, points" => (..POINTS) }

    # @return [Hash{String => Float}] the figures
    def call(measurement)
      @measurement = measurement
      @clock = measurement.mode == :cpu ? Process::CLOCK_THREAD_CPUTIME_ID : Process::CLOCK_MONOTONIC
      prepare
      WARM_UP_ROUNDS.times { round(Hash.new(0)) }
      half = measurement.seconds / 2
      before = truth(half)
      during = nil
      profile = measurement.profile { during = truth(measurement.seconds) }
      figures(before.merge(truth(half)) { |_, one, other| one + other }, during, profile)
    end

    private

    # @return [Array<String>] the methods whose shares are compared
    def names = raise(NotImplementedError)

    # Before the warm-up.
    def prepare; end

    # Runs all parts once.
    # @param times [Hash{String => Integer}] to which nanoseconds are added by method
    def round(times) = raise(NotImplementedError)

    # Subtracts time that the clocks saw, but isn't the method's.
    # @return [Hash{String => Numeric}] nanoseconds by method
    def corrected(times, _rounds) = times

    def now = Process.clock_gettime(@clock, :nanosecond)

    # @return [Hash{String => Numeric}] nanoseconds by method, and of the rest
    def truth(seconds)
      times = Hash.new(0)
      rounds = 0
      began = now
      @measurement.until_over(seconds) do
        round(times)
        rounds += 1
      end
      elapsed = now - began
      times = names.to_h { |name| [name, 0] }.merge(corrected(times, rounds))
      times.merge(OTHER => elapsed - times.values.sum)
    end

    def figures(truth, during, profile)
      measured = Bench::Shares.by_method(profile, names)
      @measurement.details(truth, measured)
      {
        "worst share, points" => worst(truth, measured),
        "of which changed" => worst(truth, during),
        "of which misread" => worst(during, measured),
        "by chance" => Bench::Shares.by_chance(truth, profile[:sampling_count]).values.max
      }
    end

    def worst(truth, others) = Bench::Shares.points(truth, others).values.map(&:abs).max
  end
end
