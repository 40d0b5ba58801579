# frozen_string_literal: true

# One call of a method that stays in a loop: compiled code that is left in it is not
# entered again before the next call.

def add_up(limit)
  number = sum = 0
  while number < limit
    sum += number & 3
    number += 1
  end
  sum
end

WORKLOAD = ->(scale) { add_up((100_000_000 * scale).ceil) }
