# frozen_string_literal: true

# One measured process: child.rb WORKLOAD VARIANT SCALE runs the workload once, traced as the variant says, and prints
# as JSON what CPU time it took and how many events there were.

require "json"
require_relative "../support/clock"

workload, variant, scale = ARGV
require_relative "../workloads/#{workload}"

# What a run is measured by: hooks that stay, or a session around it.
module Variants
  module_function

  def none = yield

  def empty(level)
    require "rperf"
    Rperf.const_get(:Native).add_empty_trace(level.to_sym)
    yield
  end

  def rperf(level, clock, measure = nil)
    require "rperf"
    took = nil
    clock = level.start_with?("count") ? nil : clock.to_sym
    Rperf.trace(calls: level.to_sym, clock:, measure: measure&.to_sym, warn: false) { took = yield }
    took
  end

  def ruby_prof
    require "ruby-prof"
    took = nil
    RubyProf::Profile.profile { took = yield }
    took
  end
end

name, *arguments = variant.split(":")
took = Variants.public_send(name, *arguments) do
  started = Bench::Clock.process_cpu
  WORKLOAD.call(Float(scale))
  Bench::Clock.process_cpu - started
end
puts JSON.generate(cpu_ns: took)
