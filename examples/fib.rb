# frozen_string_literal: true

# Nothing but calls: one recursive method, on the CPU all the time.
#
#   bin/rperf stat ruby examples/fib.rb
#
# What to look for: CPU execution is about 100 % and there is no [GVL blocked].
# `bin/rperf record -p ruby examples/fib.rb` shows Object#fib first in both
# tables: as self time (it does the work) and as total time (it is in every
# stack). Run it with `ruby --yjit` to see how much of it the compiler saves.

def fib(number)
  number < 2 ? number : fib(number - 1) + fib(number - 2)
end

puts "fib(35) = #{fib(35)}"
