# frozen_string_literal: true

require_relative "../durations"

module Accuracy
  # What the loops of c_methods.rb are made of. A part does some work each time it is
  # run, and clocks tell how long that took, by key: a method, or one use of a method.
  module Loops
    class Part
      CLOCK = Durations::CLOCK

      # @return [String] name of the method that is in the stack whenever the part works
      def wrapper = raise(NotImplementedError)

      # @return [Hash{String => String, nil}] the key for a stack that has a frame of this
      #   label; the first one counts. nil: the time is none of the part's
      def owners = raise(NotImplementedError)

      # @return [Hash{String => Integer}] calls so far, by key, where that is a C method
      def c_calls = {}

      def initialize(measurement)
        @measurement = measurement
        start_over
      end

      # Does the work.
      def run = raise(NotImplementedError)

      # Forgets the warm-up.
      def start_over
        @durations = Hash.new { |hash, key| hash[key] = Durations.new(@measurement.mode) }
        @turns = 0
        @overhead = overhead
      end

      # @return [Hash{String => Numeric}] nanoseconds by key, in the measurement's mode
      def truth
        @durations.transform_values { |it| it.sum - (it.size * @overhead) }
      end

      # @return [Array<Durations>] what the clocks said
      def durations = @durations.values

      private

      # @return [Numeric] nanoseconds of each duration that are not the key's
      def overhead = raise(NotImplementedError)
    end
  end
end
