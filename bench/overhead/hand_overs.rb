# frozen_string_literal: true

require_relative "../support/child"
require_relative "../support/statistics"
require_relative "programs"
require_relative "report"

module Overhead
  # The programs that hand the GVL over all the time, by the CPU time of their process, on
  # all CPUs and on one. All profilers take turns in one process: from one process to the
  # next these programs differ more than by what a profiler costs.
  class HandOvers
    HEADINGS = ["workload", "profiler", "runs", "CPU ms", "CPU ratio", "quartiles", "above empty", "at most", ""].freeze
    PROFILERS = ["none", "empty cpu", "empty wall", "rperf cpu", "rperf wall"].freeze
    WORKLOADS = %w[sleepers_100 sleepers_1000 tokens pipes pipe_ring].freeze
    # How much more CPU time, in ratios to no profiler, rperf may take than hooks that do
    # nothing: on all CPUs, and on one.
    SLEEPERS_BOUND = [0.08, 0.08].freeze
    BOUND = [0.04, 0.08].freeze

    def initialize(options)
      @options = options.merge(in_process: true)
      @workloads = WORKLOADS & options[:workloads]
    end

    # One workload takes minutes, so that its rows are given as soon as they are there.
    # @yieldparam rows [Array<Array<String>>] of one workload on all CPUs, or on one
    def each_table
      @workloads.product([false, *(true if Bench::Child.one_cpu)]) do |workload, one_cpu|
        name = "#{workload}#{", 1 CPU" if one_cpu}"
        warn("overhead: #{name} ...")
        results, = Programs.new(@options.merge(one_cpu:)).run(workload)
        yield table(name, results, bound(workload, one_cpu))
      end
    end

    private

    def bound(workload, one_cpu)
      (workload.start_with?("sleepers") ? SLEEPERS_BOUND : BOUND)[one_cpu ? 1 : 0]
    end

    def table(name, results, bound)
      results.map do |profiler, runs|
        ratios = Report.ratios(runs, results.fetch("none"), :cpu_ns)
        above = Report.above_floor(profiler, results, :cpu_ns)
        [name, profiler, runs.size.to_s, Report.milliseconds(runs, :cpu_ns), Report.ratio(ratios),
         Report.quartiles(ratios), Report.difference(above), *verdict(above, bound)]
      end
    end

    # @param above [Float, nil]
    def verdict(above, bound)
      return ["-", ""] unless above

      [bound.to_s, above.round(3) <= bound ? "within" : "beyond"]
    end
  end
end
