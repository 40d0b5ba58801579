# frozen_string_literal: true

# Computes a little, then waits a little, ten times over: the two halves of a
# typical request.
#
#   bin/rperf stat ruby examples/mixed.rb
#
# What to look for: GVL blocked is about 500 ms, the ten sleeps of 50 ms; the
# rest is CPU execution. In a wall profile
#
#   bin/rperf record -m wall -p ruby examples/mixed.rb
#
# the waiting is [GVL blocked] below Kernel#sleep and Object#fetch, the computing
# is in Object#score and the blocks it calls. In cpu mode (the default of
# `record`) the sleeps are gone.

ROUNDS = 10

# Stands for a query: it costs time, but no CPU.
def fetch(round)
  sleep 0.05
  Array.new(1000) { |index| ((index * 7919) + round) % 1009 }
end

def score(rows)
  rows.sum { |row| 300.times.sum { |step| (row * step) % 17 } }
end

total = 0
ROUNDS.times { |round| total += score(fetch(round)) }
puts "#{ROUNDS} rounds, score #{total}"
