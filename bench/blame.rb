# frozen_string_literal: true

# Whether blame for waits for the GVL goes to whoever had it: against what the threads of a program have noted.
#
# Each thread notes when it runs, as a loop that reads the clock again and again sees it, and when its sleeps should
# end. From then on it wants to run, and whoever runs meanwhile is to blame. What the kernel adds to a sleep is charged,
# too, so threads that work for a short time note more than is right; and where a thread that has the GVL waits for a
# CPU, nobody runs. So the machine should be quiet.
#
# "noted" and "told" are parts of all blame that a thread has; "off" is the difference in points: medians. "sum" is what
# is told of all waits, less what is told of all blame, in ns: the worst of all runs.

require_relative "support/child"
require_relative "support/engines"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"
require_relative "blame/truth"

# Measures and prints.
module Blame
  # Threads, each with what it does in turns: for how many ms it runs, and then sleeps.
  PROGRAMS = {
    "hog and visitors" => { "hog" => [40, 10], "work" => [0.3, 1], "visitor 1" => [0.05, 0.5],
                            "visitor 2" => [0.05, 0.5] },
    "one that runs on" => { "long" => [60, 20], "short" => [0.3, 1], "runs on" => [1, 0] }
  }.freeze
  HEADINGS = ["program", "engine", "thread", "noted %", "told %", "off", "worst", "sum ns"].freeze
  CHILD = File.expand_path("blame/child.rb", __dir__)

  module_function

  def options(arguments)
    defaults = { runs: 5, seconds: 6.0, engines: ["interpreter"] }
    Bench::Options.parse("blame", arguments, defaults, smoke: { runs: 1, seconds: 0.5 }) do |parser, given|
      Bench::Engines.add_option(parser, given, "interpreter")
      parser.on("--seconds S", Float, "length of a run (default 6)") { |it| given[:seconds] = it }
    end
  end

  def run(arguments)
    options = options(arguments)
    Bench::Machine.head("#{options[:runs]} runs of #{options[:seconds]} s each, wall mode at 1000 Hz")
    rows = PROGRAMS.keys.product(Bench::Engines.available(options[:engines])).flat_map do |program, engine|
      runs = Array.new(options[:runs]) { measured(program, engine, options[:seconds]) }
      runs.first[:shares].keys.map { |thread| [program, engine, thread.name, *figures(runs, thread)] }
    end
    Bench::Table.print(HEADINGS, rows)
  end

  # @return [Hash] of each thread what was noted and told, and by what the sums differ
  def measured(program, engine, seconds)
    threads = JSON.generate(PROGRAMS.fetch(program))
    told = Bench::Child.json(CHILD, threads, seconds, engine:)
    noted = Truth.new(told[:notes]).blame
    shares = [noted, told[:blame]].map do |all|
      of_threads = all.slice(*noted.keys)
      of_threads.transform_values { |ns| 100.0 * ns / of_threads.values.sum }
    end
    { shares: noted.keys.to_h { |thread| [thread, shares.map { |it| it.fetch(thread, 0.0) }] },
      sum: told[:waits] - told[:blame].values.sum }
  end

  def figures(runs, thread)
    pairs = runs.map { |run| run[:shares].fetch(thread) }
    off = pairs.map { |noted, told| told - noted }
    medians = [*pairs.transpose, off].map { |values| Bench::Statistics.median(values) }
    [*medians, off.max_by(&:abs)].map { |it| format("%.2f", it) } << runs.map { |it| it[:sum].abs }.max.to_s
  end
end

Blame.run(ARGV)
