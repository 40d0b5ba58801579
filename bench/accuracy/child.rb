# frozen_string_literal: true

# One measured process: child.rb SCENARIO MODE HERTZ SECONDS SEED [tick|safepoint]
# [details] prints as JSON by how much the profile was off; details go to stderr.

require "json"
require_relative "measurement"
require_relative "scenarios"

scenario, mode, hertz, seconds, seed, *more = ARGV
measurement = Accuracy::Measurement.new(mode: mode.to_sym, frequency: Integer(hertz), seconds: Float(seconds),
                                        seed: Integer(seed), details: more.include?("details"),
                                        capture: (more & %w[tick safepoint]).first&.to_sym)
puts JSON.generate(Accuracy::SCENARIOS.fetch(scenario).call(measurement))
