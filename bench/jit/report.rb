# frozen_string_literal: true

require_relative "../support/engines"
require_relative "../support/statistics"

module Jit
  # The table, from the pairs of each workload.
  module Report
    HEADINGS = ["engine", "workload", "mode", "pairs", "ms", "ratio", "quartiles", "CPU ratio", "quartiles",
                "samples/s", "GCs off", "on", "at most", ""].freeze
    CONTROLS = { off: "off (noise)", loaded: "rperf loaded", signals: "signals alone" }.freeze
    SHORT_PROGRAM = 1.03
    ONE_CPU = 1.05
    COMPILED = 1.02
    INTERPRETED = 1.01

    module_function

    # @return [Float, nil] the ratio that there should be at most
    def bound(engine, workload, one_cpu:)
      jit = Bench::Engines::JITS.include?(engine)
      return jit ? ONE_CPU : nil if one_cpu
      return SHORT_PROGRAM if workload == "short_program"

      jit ? COMPILED : INTERPRETED
    end

    # @param results [Hash{Symbol => Array<Hash>}] pairs by variant
    # @param bound [Float, nil]
    def rows(engine, workload, results, bound)
      results.map do |variant, pairs|
        wall = ratios(pairs, :wall_ns)
        name = CONTROLS[variant]
        [engine, workload, name || variant.name, pairs.size.to_s, milliseconds(pairs),
         *cells(wall), *cells(ratios(pairs, :cpu_ns)), rate(pairs), *collections(pairs),
         *(name ? ["-", ""] : verdict(wall, bound))]
      end
    end

    def ratios(pairs, key) = pairs.map { |pair| pair[:on][key].fdiv(pair[:off][key]) }

    def cells(ratios)
      [ratio(Bench::Statistics.median(ratios)), Bench::Statistics.quartiles(ratios).map { |it| ratio(it) }.join(" to ")]
    end

    def ratio(value) = format("%.3f", value)

    # Of the runs without a profiler.
    def milliseconds(pairs) = format("%.0f", Bench::Statistics.median(pairs.map { |pair| pair[:off][:wall_ns] }) / 1e6)

    def rate(pairs)
      rates = pairs.filter_map { |pair| pair[:on][:samples_a_second] }
      rates.empty? ? "-" : format("%.0f", Bench::Statistics.median(rates))
    end

    def collections(pairs)
      %i[off on].map { |side| Bench::Statistics.median(pairs.map { |pair| pair[side][:collections] }).round.to_s }
    end

    def verdict(ratios, bound)
      return ["-", ""] unless bound

      [format("%.2f", bound), Bench::Statistics.median(ratios).round(3) <= bound ? "within" : "beyond"]
    end
  end
end
