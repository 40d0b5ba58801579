# frozen_string_literal: true

# A program that is over before all of it is compiled: short_program.rb VARIANT HERTZ SCALE. Of each workload, a part.

variant, hertz, scale = ARGV
require "rperf" unless variant == "off"
case variant
when "off", "loaded" then nil
when "signals"
  require_relative "../support/native"
  Bench::Native.load
  BenchNative.start_tick_signals(Integer(hertz))
else Rperf.start(mode: variant.to_sym, frequency: Integer(hertz), output: File::NULL, format: :pprof)
end
PARTS = %w[sudoku emulator blocks erb json].freeze
# Each has constants of its own, some of them with the same names.
PARTS.each do |name|
  load(File.expand_path("workloads/#{name}.rb", __dir__), part = Module.new)
  part::WORKLOAD.call(Float(scale))
end
Rperf.stop unless %w[off loaded signals].include?(variant)
puts GC.count
