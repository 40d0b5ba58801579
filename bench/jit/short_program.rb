# frozen_string_literal: true

# A program that is over before all of it is compiled: short_program.rb VARIANT HERTZ SCALE. Of each workload, a part.

variant, hertz, scale = ARGV
unless variant == "off"
  require "rperf"
  Rperf.start(mode: variant.to_sym, frequency: Integer(hertz), output: File::NULL, format: :pprof)
end
PARTS = %w[sudoku emulator blocks erb json].freeze
# Each has constants of its own, some of them with the same names.
PARTS.each do |name|
  load(File.expand_path("workloads/#{name}.rb", __dir__), part = Module.new)
  part::WORKLOAD.call(Float(scale))
end
Rperf.stop if variant != "off"
