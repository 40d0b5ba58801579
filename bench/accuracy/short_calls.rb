# frozen_string_literal: true

require_relative "../support/shares"
require_relative "scenario"

module Accuracy
  # Calls of 0.1 to 3 ms, of different kinds (Ruby loops, calls into C, sleeps,
  # mixtures), in random order. The figure is the part of all time that the profile
  # puts into the wrong method, in percent.
  class ShortCalls < Scenario
    # Each takes a size from 1 to 10, worth 0.1 to 0.3 ms.
    module Timed
      NUMBERS = Array.new(1500) { |index| (index * 7919) % 1511 }.freeze
      WORDS = %w[sample frame stack node weight label state tick].freeze

      module_function

      def ruby_loop(size)
        sum = 0
        (size * 4000).times { |index| sum += index & 7 }
        sum
      end

      def ruby_calls(size) = (size * 200).times { |number| fold(number, 12) }

      def fold(number, depth) = depth.zero? ? number : fold(number + 1, depth - 1)

      def power(size) = 3.pow(size * 20_000)

      def sort(size) = size.times { NUMBERS.sort }

      def strings(size) = (size * 150).times { |number| WORDS.join("-").sub("node", number.to_s).upcase }

      def doze(size) = sleep(size * 0.0002)

      def compute_and_doze(size)
        sum = 0
        (size * 2000).times { |index| sum += index }
        sleep(size * 0.0001)
        sum
      end
    end

    NAMES = %w[ruby_loop ruby_calls power sort strings doze compute_and_doze].freeze

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      random = measurement.random
      profile = measurement.profile do
        measurement.until_over do
          name = NAMES.sample(random:)
          measurement.time(name) { Timed.public_send(name, random.rand(1..10)) }
        end
      end
      truth = measurement.truth.merge("other" => measurement.total_truth - measurement.truth.values.sum)
      { "misplaced %" => Bench::Shares.misplaced(truth, Bench::Shares.by_method(profile, NAMES)) }
    end
  end
end
