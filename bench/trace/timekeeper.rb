# frozen_string_literal: true

# One measured process: timekeeper.rb CLOCK prints as JSON what CPU time other threads than the program's own use in a
# second of a trace, in ns: while the program sleeps, and while it computes.

require "json"
require "rperf"
require_relative "../support/clock"

# The CPU time of other threads.
def beside
  process = Bench::Clock.process_cpu
  thread = Bench::Clock.thread_cpu
  yield
  (Bench::Clock.process_cpu - process) - (Bench::Clock.thread_cpu - thread)
end

def compute(ends) = (nil while Bench::Clock.wall < ends)

Rperf.trace(clock: ARGV.fetch(0).to_sym, warn: false) do
  asleep = beside { sleep 1 }
  busy = beside { compute(Bench::Clock.wall + 1_000_000_000) }
  puts JSON.generate(asleep:, busy:)
end
