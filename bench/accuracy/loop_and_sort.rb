# frozen_string_literal: true

require_relative "durations"
require_relative "unprofiled"

module Accuracy
  # Loops in Ruby and Array#sort in turns. What makes loops slower and leaves C alone, as an
  # interrupt of compiled code does, shows here.
  class LoopAndSort < Unprofiled
    NUMBERS = Array.new(20_000) { |index| (index * 7919) % 104_729 }.freeze
    # Of the time in a sort, that in a loop; in a try, steps.
    RATIO = 1.7
    TRY = 100_000

    def looping(limit)
      number = sum = 0
      while number < limit
        sum += number & 3
        number += 1
      end
      sum
    end

    def sorting = NUMBERS.sort

    private

    def names = %w[looping sorting]

    def prepare
      100.times { looping(1000) }
      tried = Array.new(20) { [Durations.of { looping(TRY) }, Durations.of { sorting }] }.transpose.map(&:min)
      @steps = (RATIO * tried.last / tried.first * TRY).round
    end

    def round(times)
      began = now
      looping(@steps)
      between = now
      sorting
      times["looping"] += between - began
      times["sorting"] += now - between
    end
  end
end
