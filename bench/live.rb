# frozen_string_literal: true

# What attaching to a running program costs and takes, beside the bars that rperf has set for itself.
#
# Each figure is of small programs with a port (bench/live/child.rb), which are asked by plain HTTP; ratios are of
# interleaved runs. The commands rbspy, py-spy (with python3) and jstack (with java) are run beside, if they are in
# PATH. The benchmark fails if a figure differs by more than twice as much as its bar allows.

require_relative "live/answers"
require_relative "live/lasting"
require_relative "live/others"
require_relative "live/screens"
require_relative "live/streams"
require_relative "live/unattended"
require_relative "support/engines"
require_relative "support/machine"
require_relative "support/native"
require_relative "support/options"

module Live
  PARTS = { "unattended" => Unattended, "answers" => Answers, "streams" => Streams, "lasting" => Lasting,
            "screens" => Screens, "others" => Others }.freeze
  # `kept`: seconds for which a method of C keeps the GVL.
  DEFAULTS = { kept: 5.0, runs: 5, pairs: 100, seconds: 2.0, scale: 0.5, attaches: 20, visits: 1000, forks: 200,
               nodes: 100_000, blocked: [1000, 33], parts: [] }.freeze
  SMOKE = { kept: 0.5, runs: 1, pairs: 1, seconds: 0.2, scale: 0.02, attaches: 1, visits: 10, forks: 5, nodes: 500,
            blocked: [20, 33] }.freeze

  module_function

  def options(arguments)
    Bench::Options.parse("live", arguments, DEFAULTS, smoke: SMOKE) do |parser, given|
      parser.on("--only NAME", *Bench::Options.some_of(PARTS.keys, "all")) { |it| given[:parts] |= [it] }
      parser.on("--pairs N", Integer, "pairs of runs for each ratio (default 100)") { |it| given[:pairs] = it }
      parser.on("--seconds S", Float, "length of what goes on for a time (default 2)") { |it| given[:seconds] = it }
      parser.on("--visits N", Integer, "attaches and detaches (default 1000)") { |it| given[:visits] = it }
    end
  end

  def run(options)
    Bench::Machine.head("Running programs, asked by their port: medians of #{options[:runs]} runs, ratios of " \
                        "#{options[:pairs]} pairs of runs;",
                        "the spread is the quartiles, or as it says; of a ratio, where the median is with 95 %.")
    puts "no real-time priority here: time without the GVL has waits for a CPU in it", "" unless Bench::Child.real_time?
    parts = options[:parts].empty? ? PARTS.keys : options[:parts]
    puts "not in PATH: #{Others.missing.join(", ")}", "" if parts.include?("others") && !Others.missing.empty?
    missed = parts.flat_map do |name|
      warn("live: #{name} ...")
      figures = PARTS.fetch(name).new(options).figures
      Bench::Table.print(Figure::HEADINGS, figures.map(&:row))
      $stdout.flush
      figures.select(&:twice?)
    end
    abort("missed by more than the bar: #{missed.join("; ")}") unless missed.empty? || options[:smoke]
  end
end

Live.run(Live.options(ARGV)) if $PROGRAM_NAME == __FILE__
