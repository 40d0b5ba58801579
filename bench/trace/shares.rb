# frozen_string_literal: true

# One measured process: shares.rb CLOCK prints as JSON by how many points the shares of parts of known durations are
# off in a trace at level ruby: as they are in the profile, by wall time and by CPU time, and with the cost of tracing
# in them.

require "json"
require "rperf"
require_relative "../support/clock"
require_relative "../support/shares"
require_relative "parts"

names = Parts::ALL.map(&:name)
# The fastest of some runs, as chance only ever adds time.
truth = Parts::ALL.to_h do |name|
  times = Array.new(5) do
    GC.start
    began = Bench::Clock.process_cpu
    Parts.public_send(name)
    Bench::Clock.process_cpu - began
  end
  [name.name, times.min]
end
GC.start
profile = Rperf.trace(clock: ARGV.fetch(0).to_sym, measure: :cpu, warn: false) { Parts.run }
of = lambda do |value|
  rows = profile.top(value:, sort: :cum, limit: 1_000)
  names.to_h { |name| [name, rows.find { |row| row[:name] == "Parts.#{name}" }&.fetch(:total) || 0] }
end
wall, cpu = %w[wall cpu].map(&of)
raw = wall.merge(of.call("overhead")) { |_, own, cost| own + cost }
puts JSON.generate({ wall:, cpu:, raw: }.transform_values { |times| Bench::Shares.misplaced(truth, times) })
