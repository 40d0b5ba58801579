# frozen_string_literal: true

module Accuracy
  # What is measured: `call` takes a Measurement and returns figures, a Hash by unit.
  class Scenario
    # Whether it needs the C part (bench/native).
    def native? = false

    # How Ruby runs the program, unless --engine says otherwise: see Bench::Engines.
    def engines = %w[interpreter]

    # Samples per second, unless --frequencies says otherwise.
    def frequencies = [1000, 100]

    # @return [Hash{String => Range}] what the median of a figure should be, by unit
    def bounds = {}
  end
end
