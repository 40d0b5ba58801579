# frozen_string_literal: true

# What it costs to count objects, or to sample them, beside samples: loops that make objects, and two gems.
#
# All runs are in one process, in turn. A ratio is the median of the ratios of the thread's CPU time to that of the
# untraced run of the same round, and of the run that has samples alone; the cost of an object is the difference to the
# latter. kramdown and rouge, where these gems are installed, are programs that weren't written for this benchmark.

require "rperf"
require_relative "support/clock"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module AllocationCost
  LOOPS = {
    "objects" => ->(n) { n.times { Object.new } },
    "strings" => ->(n) { n.times { |i| "text #{i}" } },
    "hashes" => ->(n) { (n / 5).times { |i| { a: i, b: i.to_s }.map { |key, value| [key, value] } } },
    "app" => ->(n) { (n / 20).times { |i| page(i) } },
    "no objects" => ->(n) { n.times { |i| (i * 1.5) + 1.0 } }
  }.freeze
  GEMS = %w[kramdown rouge].freeze
  # Turns at a scale of 1.
  TURNS = 2_000_000
  VARIANTS = {
    "none" => nil, "sampled" => {}, "objects sampled" => { measure: :"alloc=sampled" },
    "objects in use" => { measure: :heap }, "objects counted" => { measure: :alloc }
  }.freeze
  HEADINGS = ["program", "variant", "ratio", "quartiles", "to sampled", "quartiles", "ns/object"].freeze
  DEFAULTS = { runs: 9, scale: 1.0, programs: [] }.freeze

  module_function

  def options(arguments)
    Bench::Options.parse("allocations", arguments, DEFAULTS, smoke: { runs: 1, scale: 0.02 }) do |parser, given|
      parser.on("--scale X", Float, "how much each program does (default 1)") { |it| given[:scale] = it }
      parser.on("--only NAME", *Bench::Options.some_of([*LOOPS.keys, *GEMS], "all")) { |it| given[:programs] |= [it] }
    end
  end

  def run(options)
    Bench::Machine.head("#{options[:runs]} rounds, medians; CPU time of the thread#{", YJIT" if yjit?}")
    programs = LOOPS.merge(gems)
    programs = programs.slice(*options[:programs]) unless options[:programs].empty?
    rows = programs.flat_map do |name, work|
      warn("allocations: #{name} ...")
      rows(name, work, options)
    end
    Bench::Table.print(HEADINGS, rows)
  end

  # Those that can be loaded: programs that take a scale.
  def gems
    found = GEMS.to_h { |name| [name, gem(name)] }.compact
    missing = GEMS - found.keys
    puts("left out, as the gems aren't here: #{missing.join(", ")}", "") unless missing.empty?
    found.transform_values { |work| ->(n) { work.call(n.fdiv(TURNS)) } }
  end

  def gem(name)
    load(File.expand_path("jit/workloads/#{name}.rb", __dir__), part = Module.new)
    part::WORKLOAD
  rescue LoadError
    nil
  end

  # As much work for each object as in an ordinary program: some 2 us.
  def page(number)
    words = Array.new(4) { |i| "word#{number % 10}-#{i}" }
    sum = 0
    600.times { |i| sum = ((sum * 31) + i) % 1_000_003 }
    "#{words.join(" ")} #{sum}"
  end

  def yjit? = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?

  def rows(name, work, options)
    turns = (TURNS * options[:scale]).to_i
    results = Bench::Interleave.call(VARIANTS.keys, runs: options[:runs]) do |variant|
      time(VARIANTS.fetch(variant), work, turns)
    end
    made = Rperf.start(measure: :alloc) { work.call(turns) }.top(value: "alloc_objects").sum { |row| row[:self] }
    sampled = Bench::Statistics.median(results["sampled"])
    VARIANTS.keys.drop(1).map do |variant|
      more = Bench::Statistics.median(results[variant]) - sampled
      each = made > turns / 20 && variant != "sampled" ? format("%.1f", more.fdiv(made)) : "-"
      row(name, variant, results, each)
    end
  end

  def time(settings, work, turns)
    return timed(work, turns) unless settings

    took = nil
    Rperf.start(**settings) { took = timed(work, turns) }
    took
  end

  def timed(work, turns)
    began = Bench::Clock.thread_cpu
    work.call(turns)
    Bench::Clock.thread_cpu - began
  end

  def row(name, variant, results, each)
    to_sampled = variant == "sampled" ? ["-", "-"] : ratio(results[variant], results["sampled"])
    [name, variant, *ratio(results[variant], results["none"]), *to_sampled, each]
  end

  # The median of the ratios, and their quartiles.
  def ratio(runs, base)
    ratios = Bench::Statistics.ratios(runs, base)
    quartiles = Bench::Statistics.quartiles(ratios).map { |it| format("%.3f", it) }
    [format("%.3f", Bench::Statistics.median(ratios)), quartiles.join(" to ")]
  end
end

AllocationCost.run(AllocationCost.options(ARGV)) if $PROGRAM_NAME == __FILE__
