# frozen_string_literal: true

require_relative "part"

module Accuracy
  module Loops
    # The Ruby code of a loop: counts for some 100 us, interpreted or compiled.
    class RubyLoop < Part
      LENGTH = 100_000
      # Some 10 us if interpreted, 1 us if compiled. Short, as a call of compiled code that
      # a tick interrupts goes on interpreted, to its end.
      STEPS = 600

      # @return [Integer] calls of count_up that take as long as this, compiled if they can be
      def self.calls_for(nanoseconds)
        100.times { count_up }
        (nanoseconds / Durations.usually { 10.times { count_up } } * 10).ceil
      end

      def self.count_up
        step = 0
        step += 1 while step < STEPS
      end

      def wrapper = "ruby_loop"
      def owners = { "Accuracy::Loops::RubyLoop#ruby_loop" => wrapper }

      def run = @durations[wrapper].add(Durations.of { ruby_loop(@calls) })

      def start_over
        super
        @calls = self.class.calls_for(LENGTH)
      end

      private

      def overhead = Durations.usually { ruby_loop(0) }

      def ruby_loop(calls)
        while calls > 0
          RubyLoop.count_up
          calls -= 1
        end
      end
    end
  end
end
