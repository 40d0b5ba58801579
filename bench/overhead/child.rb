# frozen_string_literal: true

# One measured process: child.rb WORKLOAD HERTZ SCALE WARM_UP ROUNDS PROFILER... runs
# the workload ROUNDS times under each of the profilers in turn, and prints as JSON
# what each run took. With several profilers a round that isn't counted comes first.

require "json"
require_relative "../support/clock"
require_relative "../support/interleave"
require_relative "../support/proc_status"
require_relative "../support/profilers"

workload, hertz, scale, warm_up, rounds, *names = ARGV
hertz = Integer(hertz)
scale = Float(scale)
warm_up = Float(warm_up)
require_relative "../workloads/#{workload}"

# Only the workload's own time counts: not what starting and stopping takes, nor
# the warm-up, in which code runs for the first time and all stacks are new.
def measure(name, hertz, scale, warm_up)
  profiler = Bench::Profilers.fetch(name)
  require profiler.library if profiler.library
  GC.start
  profiler.start.call(hertz)
  WORKLOAD.call(scale * warm_up) if warm_up.positive?
  cpu = Bench::Clock.process_cpu
  started = Bench::Clock.wall
  WORKLOAD.call(scale)
  ended = Bench::Clock.wall
  cpu_ns = Bench::Clock.process_cpu - cpu
  profiler.stop.call
  { wall_ns: ended - started, cpu_ns:, stop_ns: Bench::Clock.wall - ended }
end

results = Bench::Interleave.call(names, runs: Integer(rounds), warm_up: names.size > 1) do |name|
  measure(name, hertz, scale, warm_up)
end
puts JSON.generate(results:, peak_kb: Bench::ProcStatus.peak_rss_kb)
