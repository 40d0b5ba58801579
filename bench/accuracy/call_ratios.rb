# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/shares"
require_relative "scenario"

module Accuracy
  # Equal methods of some ten nanoseconds, called millions of times in the ratio
  # 1 : 2 : 3 : 4. The figure is the mean error of their shares, in percent.
  #
  # The calls are written out one after the other, in random order: interpreted code
  # is sampled where a method returns, so that what a caller does between two calls
  # counts as the second one's. A short loop would give its cost to its first call.
  class CallRatios < Scenario
    RATIOS = [1, 2, 3, 4].freeze
    NAMES = RATIOS.map { |ratio| "ratio_#{ratio}" }.freeze
    # How often each is written down, times its ratio.
    COPIES = 50
    ROUNDS = 20

    METHODS = RATIOS.map { |ratio| "def self.ratio_#{ratio}(number) = ((number * 7) + 3) & 1023" }
    CALLS = RATIOS.flat_map { |ratio| ["number = ratio_#{ratio}(number)"] * (ratio * COPIES) }
    SOURCE = [*METHODS, "def self.round(number)", *CALLS.shuffle(random: Random.new(1)), "end"].join("\n")

    module Calls
      module_eval(SOURCE, __FILE__, __LINE__)
    end

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      profile = measurement.profile do
        measurement.until_over do
          ROUNDS.times { |number| Calls.round(number) }
        end
      end
      measured = Bench::Shares.by_method(profile, NAMES).slice(*NAMES)
      errors = RATIOS.map do |ratio|
        truth = ratio.fdiv(RATIOS.sum)
        (measured["ratio_#{ratio}"].fdiv(measured.values.sum) - truth).abs / truth
      end
      { "mean error %" => errors.sum / errors.size * 100 }
    end
  end
end
