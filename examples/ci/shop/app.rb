# frozen_string_literal: true

# Computes something of 480 orders. See examples/ci/README.md.

$LOAD_PATH.unshift(*Dir[File.join(__dir__, "vendor/bundle/ruby/*/gems/*/lib")])

require "shade"
require_relative "lib/order"
require_relative "lib/stock"

sum = number = 0
while number < 480
  sum += Shade.blend(number) + Order.new(number).total + Stock.count(number)
  number += 1
end
puts sum
