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

    # @return [Array<Array<String>>] of the table
    def rows
      conditions = [false, *(true if Bench::Child.one_cpu)]
      conditions.flat_map do |one_cpu|
        programs = Programs.new(@options.merge(one_cpu:))
        @workloads.flat_map do |workload|
          warn("overhead: #{workload}#{", one CPU" if one_cpu} ...")
          results, = programs.run(workload)
          table("#{workload}#{", 1 CPU" if one_cpu}", results, bound(workload, one_cpu))
        end
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
