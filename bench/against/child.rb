# frozen_string_literal: true

# One measured process: child.rb LIBRARY WORKLOAD WAY HERTZ SCALE [MEASURE] runs the workload with the rperf of
# LIBRARY, and prints as JSON what it took.

library, workload, way, hertz, scale, measure = ARGV
$LOAD_PATH.unshift(library)

require "json"
require_relative "../support/clock"

require_relative "../workloads/#{workload}"

# Code runs for the first time, and stacks are new.
WARM_UP = 0.25

require "rperf" unless way == "not loaded"
options = { output: File::NULL, format: :pprof, measure: measure&.split(",")&.map(&:to_sym) }.compact
case way
when "cpu", "wall" then Rperf.start(mode: way.to_sym, frequency: Integer(hertz), **options)
when "trace" then Rperf.start(mode: :trace, **options)
end

scale = Float(scale)
WORKLOAD.call(scale * WARM_UP)
GC.start
cpu = Bench::Clock.process_cpu
started = Bench::Clock.wall
WORKLOAD.call(scale)
wall_ns = Bench::Clock.wall - started
cpu_ns = Bench::Clock.process_cpu - cpu
Rperf.stop unless ["not loaded", "loaded"].include?(way)
puts JSON.generate(cpu_ns:, wall_ns:)
