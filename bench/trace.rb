# frozen_string_literal: true

# The cost of tracing: programs with and without it, and with hooks that do nothing.
#
# Each run has a process of its own, as calls stay slower after a trace. Only the program's own work is timed, by its
# CPU time. A ratio is the median of the ratios to the run of the same round: to the untraced one, and to the one with
# empty hooks on the same events, which no tracer gets below. The field's tracer is measured where it is installed.
#
# Then, what the thread of the indirect clock uses itself in a second, while the program sleeps and while it computes.
#
# Then, how true the times are: by how many points the shares of parts of known durations are off. The truth is CPU
# time without tracing, under each engine; what is traced runs without a compiler, also under YJIT, which so shows by
# how much the shares of the two differ. On a busy machine CPU time is truer: the system takes the CPU away from calls
# and from what they cost alike.

require_relative "support/child"
require_relative "support/engines"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module Trace
  WORKLOADS = %w[tarai interpreter rdoc].freeze
  LEVELS = %w[ruby all].freeze
  HEADINGS = ["workload", "calls", "tracer", "to untraced", "quartiles", "to empty hooks"].freeze
  BESIDE = ["the thread of the clock tick", "CPU, ms in 1 s asleep", "quartiles", "busy", "quartiles"].freeze
  SHARES = ["engine", "clock", "points off", "quartiles", "by CPU time", "quartiles", "with the cost in them"].freeze

  module_function

  def options(arguments)
    defaults = { runs: 5, workloads: [], levels: [], shares: true, scale: 1.0 }
    options = Bench::Options.parse("trace", arguments, defaults, smoke: { runs: 1, scale: 0.02 }) do |parser, given|
      parser.on("--workload NAME", *Bench::Options.some_of(WORKLOADS, "all")) { |it| given[:workloads] |= [it] }
      parser.on("--level NAME", *Bench::Options.some_of(LEVELS, "both")) { |it| given[:levels] |= [it] }
      parser.on("--[no-]shares", "how true the times are (default: yes)") { |it| given[:shares] = it }
      parser.on("--scale X", Float, "size of the workloads (default 1.0)") { |it| given[:scale] = it }
    end
    options[:workloads] = WORKLOADS if options[:workloads].empty?
    options[:levels] = LEVELS if options[:levels].empty?
    options
  end

  # The variants of a level, by what they are called in the table.
  def variants(level)
    counted = level == "all" ? "count-all" : "count"
    all = {
      "none" => "none", "empty hooks" => "empty:#{level}", "empty hooks, calls only" => "empty:#{counted}",
      "rperf, counts" => "rperf:#{counted}:auto", "rperf, auto clock" => "rperf:#{level}:auto",
      "rperf, monotonic" => "rperf:#{level}:monotonic", "rperf, tick" => "rperf:#{level}:tick",
      "rperf, latency" => "rperf:#{level}:auto:latency"
    }
    all["ruby-prof"] = "ruby_prof" if level == "all" && field?
    all
  end

  def field?
    return @field unless @field.nil?

    @field = system(RbConfig.ruby, "-e", 'require "ruby-prof"', out: File::NULL, err: File::NULL)
  end

  def run(options)
    Bench::Machine.head("#{options[:runs]} rounds, medians; CPU time, each run in a process of its own")
    rows = options[:workloads].flat_map do |workload|
      options[:levels].flat_map do |level|
        warn("trace: #{workload}, #{level} ...")
        rows(workload, level, options)
      end
    end
    Bench::Table.print(HEADINGS, rows)
    Bench::Table.print(BESIDE, [beside(options)])
    print_shares(options) if options[:shares]
  end

  # As against a clock without a thread.
  def beside(options)
    results = Bench::Interleave.call(%w[tick auto], runs: options[:runs], warm_up: false) do |clock|
      Bench::Child.json(File.expand_path("trace/timekeeper.rb", __dir__), clock)
    end
    figures = %i[asleep busy].flat_map do |name|
      took = results["tick"].zip(results["auto"]).map { |tick, auto| (tick[name] - auto[name]) / 1e6 }
      quartiles = Bench::Statistics.quartiles(took).map { |it| format("%.1f", it) }.join(" to ")
      [format("%.1f", Bench::Statistics.median(took)), quartiles]
    end
    ["notes the time every ms", *figures]
  end

  # The engines take turns, and so do the clocks.
  def print_shares(options)
    variants = Bench::Engines.available(%w[interpreter yjit]).product(%w[auto monotonic])
    results = Bench::Interleave.call(variants, runs: options[:runs], warm_up: false) do |engine, clock|
      Bench::Child.json(File.expand_path("trace/shares.rb", __dir__), clock, engine:)
    end
    puts
    Bench::Table.print(SHARES, variants.map { |variant| [*variant, *off(results[variant])] })
  end

  def off(results)
    %i[wall cpu raw].flat_map do |name|
      points = results.map { |it| it.fetch(name) }
      quartiles = Bench::Statistics.quartiles(points).map { |it| format("%.1f", it) }.join(" to ")
      [format("%.1f", Bench::Statistics.median(points)), *(quartiles unless name == :raw)]
    end
  end

  def rows(workload, level, options)
    variants = variants(level)
    results = Bench::Interleave.call(variants.keys, runs: options[:runs], warm_up: false) do |name|
      child = File.expand_path("trace/child.rb", __dir__)
      Bench::Child.json(child, workload, variants.fetch(name), options[:scale]).fetch(:cpu_ns)
    end
    rows = variants.keys.drop(1).map { |name| row(workload, level, name, results) }
    rows << [workload, level, "ruby-prof", "not installed", "-", "-"] if level == "all" && !field?
    rows
  end

  def row(workload, level, name, results)
    ratios = Bench::Statistics.ratios(results[name], results["none"])
    # A trace without times has events of calls only.
    empty = name.end_with?("counts") ? "empty hooks, calls only" : "empty hooks"
    to_empty = Bench::Statistics.median(Bench::Statistics.ratios(results[name], results[empty]))
    quartiles = Bench::Statistics.quartiles(ratios).map { |it| format("%.2f", it) }.join(" to ")
    [workload, level, name, format("%.2f", Bench::Statistics.median(ratios)), quartiles,
     name.start_with?("empty") ? "-" : format("%.2f", to_empty)]
  end
end

Trace.run(Trace.options(ARGV)) if $PROGRAM_NAME == __FILE__
