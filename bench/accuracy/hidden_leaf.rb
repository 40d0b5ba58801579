# frozen_string_literal: true

require_relative "durations"
require_relative "unprofiled"

module Accuracy
  # A compiled method that runs where a C method ran before: its frame has no program
  # counter of its own yet, only what the C method's left, so that Ruby's list of frames
  # can leave it out. Its time would then be its caller's.
  class HiddenLeaf < Unprofiled
    # Array#max calls Rational#<=>, C calls C: that is where, with `calling` in Array#max's
    # place, what it calls will be.
    RATIONALS = [1r, 2r].freeze
    # How the caller is called.
    WAYS = {
      "plain" => lambda do |it, _|
        RATIONALS.max
        it.calling
      end,
      "block" => lambda do |it, _|
        [1].each do
          RATIONALS.max
          it.calling
        end
      end,
      # In whose stack there is a function in C as a block.
      "block-of-c" => lambda do |it, _|
        { one: 1 }.each_with_index do |_, _|
          RATIONALS.max
          it.calling
        end
      end,
      "send" => lambda do |it, _|
        RATIONALS.public_send(:max)
        it.public_send(:calling)
      end,
      "depths" => ->(it, random) { it.descend(random.rand(30)) }
    }.freeze
    LENGTH = 500_000
    TRY = 50_000

    def initialize(way)
      super()
      @way = WAYS.fetch(way)
    end

    def leaf_loop(limit)
      number = sum = 0
      while number < limit
        sum += number & 3
        number += 1
      end
      sum
    end

    def other_loop(limit)
      number = sum = 0
      while number < limit
        sum += number ^ 5
        number += 1
      end
      sum
    end

    # The clocks are the C methods.
    def calling
      began = Process.clock_gettime(@clock, :nanosecond)
      leaf_loop(@steps)
      between = Process.clock_gettime(@clock, :nanosecond)
      other_loop(@steps / 2)
      ended = Process.clock_gettime(@clock, :nanosecond)
      @times["leaf_loop"] += between - began
      @times["other_loop"] += ended - between
    end

    def descend(depth)
      return descend(depth - 1) unless depth.zero?

      RATIONALS.max
      calling
    end

    private

    def names = %w[leaf_loop other_loop calling]

    def prepare
      @times = Hash.new(0)
      @steps = 1000
      200.times { calling }
      @steps = (LENGTH * TRY / Array.new(20) { Durations.of { leaf_loop(TRY) } }.min.to_f).round
    end

    def round(times)
      @times = times
      @way.call(self, @measurement.random)
    end
  end
end
