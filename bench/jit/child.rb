# frozen_string_literal: true

# One measured process: child.rb FILE SECONDS LEAD WARM_UP HERTZ ROUNDS VARIANT... runs the workload of the file in
# ROUNDS pairs of each variant (off, signals, or a mode), in random order, and prints as JSON what each run took.

require "json"
require_relative "pairs"

file, seconds, lead, warm_up, hertz, rounds, *variants = ARGV
require file
pairs = Jit::Pairs.new(WORKLOAD, seconds: Float(seconds), lead: Float(lead), frequency: Integer(hertz))
pairs.warm_up(Float(warm_up), variants)
results = variants.to_h { |name| [name, []] }
Integer(rounds).times do
  variants.shuffle.each { |name| results[name] << pairs.pair(name) }
end
puts JSON.generate(results)
