# frozen_string_literal: true

# One measured process: child.rb SCENARIO MODE HERTZ SECONDS SEED prints as JSON by
# how much the profile was off.

require "json"
require_relative "measurement"
require_relative "scenarios"

scenario, mode, hertz, seconds, seed = ARGV
measurement = Accuracy::Measurement.new(mode: mode.to_sym, frequency: Integer(hertz), seconds: Float(seconds),
                                        seed: Integer(seed))
puts JSON.generate(Accuracy::SCENARIOS.fetch(scenario).call(measurement))
