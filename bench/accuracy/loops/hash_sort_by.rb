# frozen_string_literal: true

require_relative "part"

module Accuracy
  module Loops
    # Hash#sort_by with a block, which has two phases: Hash#each calls the block for
    # every entry, and then the results are sorted, all in C. The clock is read in the
    # block's last call. Samples of the block count as Hash#each's here, as does what
    # the block calls: so the two phases are the two keys.
    class HashSortBy < Part
      ENTRIES = 110

      def initialize(measurement)
        @hash = Array.new(ENTRIES) { |index| ["key #{index}", "abcde" * ((index * 7919) % 200)] }.to_h
        super
      end

      def wrapper = "run_hash_sort_by"

      # Inside of Hash#each there is another frame that says Enumerable#sort_by.
      def owners
        { "Process.clock_gettime" => nil, "Hash#each" => "hash_each", "Enumerable#sort_by" => "sort_by" }
      end

      def c_calls = { "hash_each" => @turns, "sort_by" => @turns }

      def run
        run_hash_sort_by
        @turns += 1
      end

      private

      def overhead = Durations.reading

      def run_hash_sort_by
        left = ENTRIES
        called = nil
        began = Process.clock_gettime(CLOCK, :nanosecond)
        @hash.sort_by do |key, text|
          called = Process.clock_gettime(CLOCK, :nanosecond) if (left -= 1).zero?
          [text.count("aeiou"), key]
        end
        ended = Process.clock_gettime(CLOCK, :nanosecond)
        @durations["hash_each"].add(called - began)
        @durations["sort_by"].add(ended - called)
      end
    end
  end
end
