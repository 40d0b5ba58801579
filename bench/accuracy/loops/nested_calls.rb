# frozen_string_literal: true

require_relative "part"
require_relative "ruby_loop"

module Accuracy
  module Loops
    # C calls Ruby, which calls C: String#gsub has a block, which calls a method in Ruby,
    # and Integer#pow. Clocks in the block tell the three apart; what the block itself
    # does, next to nothing, is String#gsub's.
    class NestedCalls < Part
      PATTERN = /[aeiou]{4}/
      MATCHES = 4
      # Some 80 us to search, and to compute.
      TEXT = "#{"abcde" * 1100}aeio" * MATCHES
      EXPONENT = 34_000

      def wrapper = "run_nested"

      def owners
        { "Process.clock_gettime" => nil, "Integer#pow" => "nested_pow",
          "Accuracy::Loops::NestedCalls#nested_ruby" => "nested_ruby", "String#gsub" => "gsub" }
      end

      def c_calls = { "gsub" => @turns, "nested_pow" => @turns * MATCHES }

      def run
        run_nested
        @turns += 1
      end

      def start_over
        super
        @calls = RubyLoop.calls_for(RubyLoop::LENGTH / 2)
      end

      private

      def overhead = Durations.reading

      def run_nested
        left = Process.clock_gettime(CLOCK, :nanosecond)
        TEXT.gsub(PATTERN) do
          entered = Process.clock_gettime(CLOCK, :nanosecond)
          nested_ruby(@calls)
          between = Process.clock_gettime(CLOCK, :nanosecond)
          3.pow(EXPONENT)
          computed = Process.clock_gettime(CLOCK, :nanosecond)
          @durations["gsub"].add(entered - left)
          @durations["nested_ruby"].add(between - entered)
          @durations["nested_pow"].add(computed - between)
          left = computed
          ""
        end
        @durations["gsub"].add(Process.clock_gettime(CLOCK, :nanosecond) - left)
      end

      def nested_ruby(calls)
        while calls > 0
          RubyLoop.count_up
          calls -= 1
        end
      end
    end
  end
end
