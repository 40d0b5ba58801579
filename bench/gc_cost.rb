# frozen_string_literal: true

# Whether gc_cost keeps its promise: how much GC time a program saves if a site is removed.
#
# Each program has two sites. It runs as it is, with gc_cost measured, and without the site, in turn, in processes of
# their own. "promised" is the site's gc_cost, "saved" the difference of GC time on the CPU: medians.

require_relative "support/child"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module GcCost
  PROGRAMS = ["garbage", "pages", "growing cache", "beside a cache"].freeze
  HEADINGS = ["program", "GC ms", "site's part %", "promised ms", "saved ms", "off %"].freeze
  MEASURES = "heap,gc_cost"

  # The programs, each with a site that can be left out.
  class Program
    Row = Struct.new(:id, :name, :tags)

    def initialize(without:) = @without = without

    def garbage(turns)
      @base = Array.new(200_000) { |i| [i] }
      (turns * 20_000).times do
        removed { Array.new(3) { Object.new } }
        Object.new
      end
    end

    # Objects that live for a request.
    def pages(turns)
      @base = Array.new(200_000) { |i| [i] }
      (turns * 12).times do
        rows = Array.new(800) { |i| Row.new(i, "row #{i}", [i]) }
        removed { rows.map { |row| "<td>#{row.id}</td><td>#{row.name}</td>" }.join }
        rows.sum(&:id)
      end
    end

    # What is removed stays.
    def growing_cache(turns)
      cache = []
      (turns * 20_000).times do |i|
        removed { cache << [i, Object.new] } if (i % 10).zero?
        Object.new
      end
      cache.size
    end

    # What stays is left.
    def beside_a_cache(turns)
      cache = []
      (turns * 20_000).times do |i|
        cache << [i, Object.new] if (i % 10).zero?
        removed { Array.new(3) { Object.new } }
      end
      cache.size
    end

    def removed = @without ? nil : yield
  end

  # One run, in a process of its own.
  module Run
    module_function

    def call(name, turns, without)
      require "rperf"
      require "json"
      program = Program.new(without:)
      profile = Rperf.start(mode: :cpu, measure: MEASURES.split(",").map(&:to_sym)) do
        program.public_send(name.tr(" ", "_"), turns)
      end
      rows = profile.top(value: "gc_cost", sort: :total, limit: nil)
      cost = rows.find { |row| row[:name].end_with?("#removed") }
      puts [profile.gc[:causes].sum { |row| row[:cpu_ns] }, cost ? cost[:total] : 0].to_json
    end
  end

  module_function

  def run(options)
    Bench::Machine.head("#{options[:runs]} rounds, medians; --measure #{MEASURES}")
    rows = PROGRAMS.map do |name|
      results = Bench::Interleave.call([false, true], runs: options[:runs]) { |without| child(name, options, without) }
      with, without = [false, true].map { |it| results[it] }
      row(name, median(with, 0), median(with, 1), median(with, 0) - median(without, 0))
    end
    Bench::Table.print(HEADINGS, rows)
  end

  def median(results, index) = Bench::Statistics.median(results.map { |it| it[index] })

  def row(name, all, promised, saved)
    off = saved.zero? ? "-" : format("%+.0f", 100.0 * (promised - saved) / saved)
    [name, ms(all), format("%.0f", 100.0 * promised / all), ms(promised), ms(saved), off]
  end

  def ms(nanoseconds) = format("%.0f", nanoseconds / 1e6)

  def child(name, options, without)
    Bench::Child.json(__FILE__, "--child", name, options[:turns], without)
  end
end

if $PROGRAM_NAME == __FILE__
  if ARGV.first == "--child"
    name, turns, without = ARGV.drop(1)
    GcCost::Run.call(name, Integer(turns), without == "true")
  else
    options = Bench::Options.parse("gc-cost", ARGV, { runs: 5, turns: 100 }, smoke: { runs: 1, turns: 3 })
    GcCost.run(options)
  end
end
