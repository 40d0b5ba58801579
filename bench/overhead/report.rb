# frozen_string_literal: true

require_relative "../support/profilers"
require_relative "../support/statistics"
require_relative "../support/table"

module Overhead
  # The tables, from the runs of each profiler.
  module Report
    HEADINGS = ["workload", "runs", "profiler", "ms", "ratio", "quartiles", "above empty", "CPU ratio", "above empty",
                "extra MB", "stop ms"].freeze
    WEB_HEADINGS = ["profiler", "requests/s", "ratio", "p50 ms", "p99 ms"].freeze
    IDLE_HEADINGS = ["profiler", "wakeups/s", "of its own threads", "its threads", "CPU us/s"].freeze

    module_function

    # @param results [Hash{String => Array<Hash>}] runs by profiler
    def rows(workload, how, results)
      base = results.fetch("none")
      results.map do |name, runs|
        ratios = ratios(runs, base, :wall_ns)
        wall_above, cpu_above = %i[wall_ns cpu_ns].map { |key| difference(above_floor(name, results, key)) }
        [workload, how, name, milliseconds(runs, :wall_ns), ratio(ratios), quartiles(ratios), wall_above,
         ratio(ratios(runs, base, :cpu_ns)), cpu_above, extra_megabytes(runs, base), milliseconds(runs, :stop_ns)]
      end
    end

    def web_rows(results)
      rates = results.transform_values { |runs| runs.map { |run| run[:requests] * 1e9 / run[:wall_ns] } }
      results.map do |name, runs|
        [name, format("%.0f", Bench::Statistics.median(rates[name])),
         ratio(Bench::Statistics.ratios(rates[name], rates["none"])),
         milliseconds(runs, :p50_ns, 2), milliseconds(runs, :p99_ns, 2)]
      end
    end

    def idle_rows(results)
      results.map do |name, runs|
        middle = ->(key) { Bench::Statistics.median(runs.map { |run| run[key] }) }
        [name, format("%.1f", middle[:wakeups]), format("%.1f", middle[:profiler_wakeups]),
         format("%d", middle[:profiler_threads]), format("%.0f", middle[:cpu_ns] / 1000)]
      end
    end

    # How much more than hooks that do nothing: the profiler's own part.
    # @return [Float, nil] a difference of ratios to no profiler; nil if there are no such hooks to set it against
    def above_floor(name, results, key)
      base = results.fetch("none")
      floor = results[Bench::Profilers.fetch(name).floor]
      return unless floor

      pairs = ratios(results.fetch(name), base, key).zip(ratios(floor, base, key))
      Bench::Statistics.median(pairs.map { |ratio, least| ratio - least })
    end

    def difference(value) = value ? format("%+.3f", value) : "-"

    def quartiles(ratios) = Bench::Statistics.quartiles(ratios).map { |it| ratio([it]) }.join(" to ")

    def extra_megabytes(runs, base)
      differences = runs.zip(base).filter_map do |run, other|
        run[:peak_kb] - other[:peak_kb] if run[:peak_kb] && other[:peak_kb]
      end
      differences.empty? ? "-" : format("%+.1f", Bench::Statistics.median(differences) / 1024.0)
    end

    def ratios(runs, base, key)
      Bench::Statistics.ratios(runs.map { |run| run[key] }, base.map { |run| run[key] })
    end

    def ratio(values) = format("%.3f", Bench::Statistics.median(values))

    def milliseconds(runs, key, digits = 1)
      format("%.#{digits}f", Bench::Statistics.median(runs.map { |run| run[key] }) / 1e6)
    end
  end
end
