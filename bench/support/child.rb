# frozen_string_literal: true

# One measured run, in a process of its own: child.rb WORKLOAD MODE FREQUENCY SCALE,
# MODE being none, cpu or wall. Prints what it measured as JSON.

require "json"
require "tmpdir"
require_relative "clock"

workload, mode, frequency, scale = ARGV
require_relative "../workloads/#{workload}"

# @return [Integer] nanoseconds that the workload took
def timed(scale)
  started = Bench::Clock.wall
  WORKLOAD.call(scale)
  Bench::Clock.wall - started
end

result = {}
if mode == "none"
  result[:workload_ns] = timed(Float(scale))
else
  require "rperf"
  output = File.join(Dir.tmpdir, "rperf-bench-#{Process.pid}.pb.gz")
  Rperf.start(mode: mode.to_sym, frequency: Integer(frequency), output:)
  result[:workload_ns] = timed(Float(scale))
  data = Rperf.stop
  result[:sampling_ns] = data[:sampling_time_ns]
  result[:stacks] = data[:unique_stacks]
  File.delete(output)
end
result[:cpu_ns] = Bench::Clock.process_cpu
result[:rss_kb] = File.read("/proc/self/status")[/VmHWM:\s*(\d+)/, 1].to_i if File.exist?("/proc/self/status")
puts JSON.generate(result)
