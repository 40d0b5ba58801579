# frozen_string_literal: true

# Loops of about 2 ms, if compiled, and Array#sort in turns: some 63 and 37 % of the time.

NUMBERS = Array.new(20_000) { |index| (index * 7919) % 104_729 }.freeze

def looping(limit)
  number = sum = 0
  while number < limit
    sum += number & 3
    number += 1
  end
  sum
end

def sorting = NUMBERS.sort

WORKLOAD = lambda do |scale|
  (80 * scale).ceil.times do
    looping(1_000_000)
    sorting
  end
end
