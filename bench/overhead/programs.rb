# frozen_string_literal: true

require_relative "../support/child"
require_relative "../support/interleave"

module Overhead
  # Runs the programs of bench/workloads under each profiler in turn.
  class Programs
    NAMES = Dir.children(File.expand_path("../workloads", __dir__)).map { |it| File.basename(it, ".rb") }.sort.freeze
    # Where hardly a hook runs, what differs from one process to the next (where
    # things lie in memory) is more than what a profiler costs.
    IN_ONE_PROCESS = %w[garbage interpreter].freeze
    # Their threads wait for each other all the time. How fast they go depends on the
    # CPUs that the system happens to place them on, by a factor of up to ten.
    ON_ONE_CPU = %w[pipe_ring thread_per_task tokens].freeze
    # Rounds in a process when profilers take turns in it; then comes the next, in
    # which things lie elsewhere.
    ROUNDS = 5
    CHILD = File.expand_path("child.rb", __dir__)

    def initialize(options)
      @options = options
    end

    # @return [Array(Hash{String => Array<Hash>}, String)] the runs by profiler, and
    #   how they were made
    def run(workload)
      @cpu = Bench::Child.one_cpu if @options.fetch(:one_cpu) { ON_ONE_CPU.include?(workload) }
      how = @cpu ? ", 1 CPU" : ""
      together = @options.fetch(:in_process) { IN_ONE_PROCESS.include?(workload) }
      together ? [alternating(workload), "alternating#{how}"] : [in_turn(workload), "processes#{how}"]
    end

    private

    def in_turn(workload)
      Bench::Interleave.call(@options[:profilers], runs: @options[:runs], warm_up: !@options[:smoke]) do |name|
        output = child(workload, 1, [name])
        output[:results].values.first.first.merge(peak_kb: output[:peak_kb])
      end
    end

    def alternating(workload)
      names = @options[:profilers]
      results = names.to_h { |name| [name, []] }
      while (left = @options[:runs] - results.values.first.size).positive?
        output = child(workload, [left, ROUNDS].min, names)
        names.each { |name| results[name].concat(output[:results].fetch(name.to_sym)) }
      end
      results
    end

    def child(workload, rounds, names)
      Bench::Child.json(CHILD, workload, *@options.values_at(:frequency, :scale, :warm_up), rounds, *names, cpu: @cpu)
    end
  end
end
