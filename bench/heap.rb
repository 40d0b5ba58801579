# frozen_string_literal: true

# How long `rperf heap` stops a program of a million objects, beside a fork of the same program.
#
# A thread of the program (bench/live/child.rb) sleeps for 0.1 ms at a time and notes its longest gap: while the command
# asks for all objects and makes its page, while the program forks a child that ends at once, and while nobody does
# anything, in turn. Each takes as long, and all are in one process. The program has real-time priority, where that can
# be had, so that waits for a CPU hardly count.

require_relative "live/figure"
require_relative "live/program"
require_relative "support/engines"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module HeapPause
  COMMAND = File.expand_path("../lib/rperf/bin/rperf-command", __dir__)
  ENGINES = %w[interpreter yjit].freeze
  DEFAULTS = { runs: 15, objects: 1_000_000, engines: ENGINES }.freeze
  SMOKE = { runs: 1, objects: 10_000 }.freeze
  # What `rperf heap` may stop a program for beyond a fork.
  BAR_MS = 5

  module_function

  def options(arguments)
    Bench::Options.parse("heap", arguments, DEFAULTS, smoke: SMOKE) do |parser, given|
      parser.on("--objects N", Integer, "objects of the program (default 1000000)") { |it| given[:objects] = it }
      Bench::Engines.add_option(parser, given, ENGINES.join(", "))
    end
  end

  def run(options)
    Bench::Machine.head("A program with #{options[:objects]} objects: medians of #{options[:runs]} interleaved " \
                        "rounds; the spread is the quartiles")
    puts "no real-time priority here: gaps have waits for a CPU in them", "" unless Bench::Child.real_time?
    figures = Bench::Engines.available(options[:engines]).flat_map do |engine|
      warn("heap: #{engine} ...")
      Live::Program.open({ objects: options[:objects] }, engine:, real_time: true) do |program|
        figures(engine, rounds(program, options[:runs]))
      end
    end
    Bench::Table.print(Live::Figure::HEADINGS, figures.map(&:row))
    missed = figures.select(&:twice?)
    abort("missed by more than the bar: #{missed.join("; ")}") unless missed.empty? || options[:smoke]
  end

  # Gaps in ns, by what goes on meanwhile.
  def rounds(program, runs)
    seconds = 0
    # The warm-up round tells how long the command takes.
    Bench::Interleave.call(%i[heap fork nothing], runs:) do |what|
      began = Bench::Clock.wall
      gap = what == :heap ? program.meanwhile("gap_until_told") { ask(program) } : gap_of(program, what, seconds)
      seconds = [seconds, (Bench::Clock.wall - began) / 1e9].max if what == :heap
      gap
    end
  end

  def gap_of(program, what, seconds)
    program.command(*(what == :fork ? ["gap_of_fork", seconds] : ["gap", seconds])).fetch(:gap_ns)
  end

  # The command's own process has all of the analysis.
  def ask(program)
    system(COMMAND, "heap", "--force", program.pid.to_s, out: File::NULL) || abort("bin/bench heap: rperf heap failed")
  end

  def figures(engine, gaps)
    ms = gaps.transform_values { |runs| runs.map { |ns| ns / 1e6 } }
    more = ms[:heap].zip(ms[:fork]).map { |heap, fork| heap - fork }
    [["nothing", ms[:nothing]], ["fork { exit! }", ms[:fork]], ["rperf heap", ms[:heap]]]
      .map { |what, runs| Live::Figure.median("#{engine}: longest pause, #{what}", runs, "ms") } +
      [Live::Figure.median("#{engine}: rperf heap beyond fork", more, "ms", BAR_MS)]
  end
end

HeapPause.run(HeapPause.options(ARGV)) if $PROGRAM_NAME == __FILE__
