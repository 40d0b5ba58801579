# frozen_string_literal: true

require "json"
require_relative "part"

module Accuracy
  module Loops
    # Calls of one C method, at one size. A wrapper of their own tells them from the
    # same method's calls of other sizes: a sample is theirs if both are in its stack.
    #
    # Short calls come in batches. What is not the C method (loop, wrapper, one reading of
    # the clock) is taken off: it is what the same batch takes with a C method that does
    # nothing. As that one takes some 20 ns, the truth of 5 us calls is too low by 0.4 %
    # of itself, that of longer ones by less.
    class CCalls < Part
      # label: the C method's frame; call: the code, of an input; input: for a size;
      # sizes: some 5, 80 and 350 (LONG) us a call on a machine of 2026.
      Kind = Data.define(:label, :call, :input, :sizes)

      KINDS = {
        "sort" => Kind.new("Array#sort", "input.sort",
                           ->(size) { (1..size).to_a.shuffle(random: Random.new(1)) }, [150, 1150, 3600]),
        "count" => Kind.new("String#count", 'input.count("aeiou")',
                            ->(size) { "sample frame " * size }, [800, 12_000, 54_000]),
        "match" => Kind.new("Regexp#match?", "/[aeiou]{4}/.match?(input)",
                            ->(size) { "abcde" * size }, [70, 1100, 5000]),
        "pow" => Kind.new("Integer#pow", "3.pow(input)",
                          ->(size) { size }, [2500, 34_000, 110_000]),
        "pack" => Kind.new("Array#pack", 'input.pack("N*")',
                           ->(size) { Array.new(size) { |index| index * 40_503 } }, [130, 2500, 10_500]),
        "json" => Kind.new("JSON::Ext::Generator::State.generate", "JSON.generate(input)",
                           ->(size) { Array.new(size) { |index| { "id" => index, "name" => "user #{index}" } } },
                           [50, 950, 4000])
      }.freeze

      LONG = 350
      SIZES = { short: 0, medium: 1, long: 2 }.freeze
      # Calls in a batch.
      BATCHES = { short: 20, medium: 1, long: 1 }.freeze

      attr_reader :wrapper, :owners

      # @param kind [String] a key of KINDS
      # @param size [Symbol] a key of SIZES
      def initialize(measurement, kind, size)
        made = KINDS.fetch(kind)
        @input = made.input.call(made.sizes[SIZES.fetch(size)])
        @calls = BATCHES.fetch(size)
        @wrapper = "#{kind}_#{size}"
        @owners = { made.label => wrapper }
        define(:work, wrapper, made.call)
        define(:nothing, "#{wrapper}_nothing", "input.frozen?")
        super(measurement)
      end

      def c_calls = { wrapper => @turns * @calls }

      def run
        @durations[wrapper].add(Durations.of { work })
        @turns += 1
      end

      private

      def overhead = Durations.usually { nothing }

      # Written out, so that nothing is between the loop and the call.
      WRAPPER = <<~RUBY
        def %<name>s(input, calls)
          while calls > 0
            %<call>s
            calls -= 1
          end
        end

        def %<entry>s = %<name>s(@input, @calls)
      RUBY
      private_constant :WRAPPER

      def define(entry, name, call)
        singleton_class.class_eval(format(WRAPPER, entry:, name:, call:), __FILE__, __LINE__)
      end
    end
  end
end
