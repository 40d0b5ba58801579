# frozen_string_literal: true

# What profiling costs: the same programs with and without it, in turn.
#
# Each run is a new process. "workload" is the time that the program's own work
# took, by a clock read around it; "process" is the whole process, with start-up
# and the writing of the profile. A ratio is the median of the ratios to the
# unprofiled run of the same round; its quartiles tell how far to trust it.

require "json"
require "open3"
require "optparse"
require_relative "support/clock"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/statistics"
require_relative "support/table"

# Runs the workloads and prints the table.
class Overhead
  Options = Struct.new(:runs, :workloads, :frequency, :scale)

  CHILD = File.expand_path("support/child.rb", __dir__)
  ALL = Dir.children(File.join(__dir__, "workloads")).map { |name| File.basename(name, ".rb") }.sort.freeze
  MODES = %w[none cpu wall].freeze
  HEADINGS = ["workload", "mode", "workload ms", "ratio", "quartiles", "process ms", "ratio", "cpu ratio",
              "peak MB"].freeze

  def self.options(arguments)
    options = Options.new(10, [], 1000, 1.0)
    OptionParser.new do |parser|
      parser.banner = "usage: bin/bench overhead [options]"
      parser.on("--runs N", Integer, "rounds to measure (default 10)") { |runs| options.runs = runs }
      parser.on("--workload NAME", ALL, "one of #{ALL.join(", ")}; may be repeated (default: all)") do |name|
        options.workloads << name
      end
      parser.on("--frequency HZ", Integer, "samples per second (default 1000)") { |hertz| options.frequency = hertz }
      parser.on("--scale X", Float, "size of the workloads (default 1.0)") { |scale| options.scale = scale }
      parser.on("--smoke", "one short round, to see that it works") do
        options.runs = 1
        options.scale = 0.05
      end
    end.parse!(arguments)
    options.workloads = ALL if options.workloads.empty?
    options
  end

  def initialize(options)
    @options = options
  end

  def run
    puts Bench::Machine.describe
    puts "#{@options.runs} rounds at #{@options.frequency} Hz, medians", ""
    Bench::Table.print(HEADINGS, @options.workloads.flat_map { |workload| rows(workload) })
  end

  private

  def rows(workload)
    warn("#{workload} ...")
    results = Bench::Interleave.call(MODES, runs: @options.runs) { |mode| measure(workload, mode) }
    MODES.map { |mode| row(workload, mode, results[mode], results["none"]) }
  end

  def measure(workload, mode)
    started = Bench::Clock.wall
    output, status = Open3.capture2(RbConfig.ruby, "-I", File.expand_path("../lib", __dir__), CHILD,
                                    workload, mode, @options.frequency.to_s, @options.scale.to_s)
    process_ns = Bench::Clock.wall - started
    abort("bench/overhead: #{workload} failed in mode #{mode} (#{status})") unless status.success?

    JSON.parse(output, symbolize_names: true).merge(process_ns:)
  end

  def row(workload, mode, runs, base)
    ratios = ratios(runs, base, :workload_ns)
    quartiles = [0.25, 0.75].map { |share| format("%.3f", Bench::Statistics.quantile(ratios, share)) }
    [workload, mode, milliseconds(runs, :workload_ns), median_ratio(ratios), quartiles.join(" to "),
     milliseconds(runs, :process_ns), median_ratio(ratios(runs, base, :process_ns)),
     median_ratio(ratios(runs, base, :cpu_ns)), megabytes(runs)]
  end

  def ratios(runs, base, key) = runs.zip(base).map { |run, unprofiled| run[key].fdiv(unprofiled[key]) }

  def median_ratio(ratios) = format("%.3f", Bench::Statistics.median(ratios))

  def milliseconds(runs, key) = format("%.1f", Bench::Statistics.median(runs.map { |run| run[key] }) / 1e6)

  def megabytes(runs)
    sizes = runs.filter_map { |run| run[:rss_kb] }
    sizes.empty? ? "-" : format("%.1f", Bench::Statistics.median(sizes) / 1024)
  end
end

Overhead.new(Overhead.options(ARGV)).run if $PROGRAM_NAME == __FILE__
