# frozen_string_literal: true

# An order with a few positions.
class Order
  attr_reader :number

  def initialize(number)
    @number = number
  end

  def total
    sum = position = 0
    while position < 3_000
      sum += ((position * 7) + number) % 11
      position += 1
    end
    sum
  end
end
