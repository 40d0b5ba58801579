# frozen_string_literal: true

# What it costs to count objects, or to sample them, beside samples: loops that do little else than make them.
#
# All runs are in one process, in turn. A ratio is the median of the ratios of the thread's CPU time to that of the
# untraced run of the same round; the cost of an object is the difference to sampling alone.

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
  VARIANTS = {
    "none" => nil, "sampled" => {}, "objects sampled" => { measure: :"alloc=sampled" },
    "objects in use" => { measure: :heap }, "objects counted" => { measure: :alloc }
  }.freeze
  HEADINGS = ["loop", "variant", "ratio", "quartiles", "ns/object"].freeze

  module_function

  def run(options)
    Bench::Machine.head("#{options[:runs]} rounds, medians; CPU time of the thread#{", YJIT" if yjit?}")
    rows = LOOPS.flat_map { |name, work| rows(name, work, options) }
    Bench::Table.print(HEADINGS, rows)
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
    # All of the first 131,072 objects are told; of most programs these are a small part.
    turns = (2_000_000 * options[:scale]).to_i
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
    ratios = Bench::Statistics.ratios(results[variant], results["none"])
    quartiles = Bench::Statistics.quartiles(ratios).map { |it| format("%.2f", it) }.join(" to ")
    [name, variant, format("%.2f", Bench::Statistics.median(ratios)), quartiles, each]
  end
end

if $PROGRAM_NAME == __FILE__
  options = Bench::Options.parse("allocations", ARGV, { runs: 9, scale: 1.0 }, smoke: { runs: 1, scale: 0.02 })
  AllocationCost.run(options)
end
