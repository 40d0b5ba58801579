# frozen_string_literal: true

# Four threads that all want the CPU. Only one at a time can hold the GVL, so the
# program is no faster than one thread doing the work of four.
#
#   bin/rperf stat ruby examples/threads.rb
#
# What to look for: GVL wait is about two thirds of all time: each of the four runs
# for a quarter of its life and waits for its turn for the rest. GVL blocked is the
# main thread, which waits for their results. In a profile
# (`bin/rperf record -m wall -p ruby examples/threads.rb`) [GVL wait] stands
# below Object#count_primes: that is the code that could not run.

THREADS = 4

def prime?(number)
  divisor = 2
  while divisor * divisor <= number
    return false if (number % divisor).zero?

    divisor += 1
  end
  true
end

def count_primes(range)
  range.count { |number| prime?(number) }
end

threads = Array.new(THREADS) do |index|
  Thread.new do
    Thread.current.name = "counter #{index}"
    count_primes((2 + (index * 120_000))...(2 + ((index + 1) * 120_000)))
  end
end
puts "#{threads.sum(&:value)} primes below #{THREADS * 120_000}"
