# frozen_string_literal: true

# One measured process: child.rb FILE SECONDS LEAD WARM_UP HERTZ ROUNDS VARIANT... runs the workload of the file in
# ROUNDS pairs of each variant (off, or a mode), in random order, and prints as JSON what each run took.

require "json"
require_relative "pairs"

file, seconds, lead, warm_up, hertz, rounds, *variants = ARGV
require file
variants = variants.to_h { |name| [name, name == "off" ? nil : name.to_sym] }
pairs = Jit::Pairs.new(WORKLOAD, seconds: Float(seconds), lead: Float(lead), frequency: Integer(hertz))
pairs.warm_up(Float(warm_up), variants.values.compact)
results = variants.transform_values { [] }
Integer(rounds).times do
  variants.to_a.shuffle.each { |name, mode| results[name] << pairs.pair(mode) }
end
puts JSON.generate(results)
