# frozen_string_literal: true

# How long a snapshot, the end of a session, or what is done with a profile keeps other
# threads from the GVL.
#
# A program is profiled until its profile has so many stacks. Then it takes a snapshot,
# while a thread sleeps for 0.1 ms at a time and notes its longest gap. "Again" is the
# second snapshot, whose frames have names already; "samples" are the Arrays of a
# profile, which are made when something asks for them. The second table has what is
# done with a file of deep stacks. A process for each.

require "tmpdir"
require_relative "support/child"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Snapshot
  CHILD = File.join(__dir__, "snapshot", "child.rb")
  DEEP = File.join(__dir__, "snapshot", "deep.rb")
  ACTIONS = ["snapshot", "snapshot again", "clear", "stop", "top", "samples"].freeze
  DEEP_ACTIONS = %w[load top tree samples].freeze
  # Stacks, and further threads, which are blocked.
  SIZES = [[1_000, 0], [10_000, 0], [100_000, 0], [1_000, 1_000]].freeze
  # Stacks, and their frames.
  DEEP_SIZE = [7_000, 2_000].freeze
  HEADINGS = ["longest gap ms", "quartiles", "without ms", "takes ms"].freeze

  module_function

  def options(arguments)
    defaults = { runs: 5, sizes: SIZES, actions: ACTIONS, deep: DEEP_SIZE }
    smoke = { runs: 1, sizes: [[200, 20]], deep: [50, 100] }
    Bench::Options.parse("snapshot", arguments, defaults, smoke:) do |parser, given|
      parser.on("--stacks N", Integer, "only programs with so many stacks") do |stacks|
        given.merge!(sizes: SIZES.select { |size,| size == stacks }, deep: nil)
      end
      parser.on("--only NAME", ACTIONS, "only one of: #{ACTIONS.join(", ")}") do |action|
        given.merge!(actions: [action], deep: nil)
      end
      parser.on("--deep", "only the file of deep stacks") { given[:sizes] = [] }
    end
  end

  def run(options)
    Bench::Machine.head("How long other threads can't get the GVL, medians of #{options[:runs]} interleaved runs")
    programs(options) unless options[:sizes].empty?
    deep_file(options) if options[:deep]
  end

  def programs(options)
    cases = options[:sizes].product(options[:actions])
    results = Bench::Interleave.call(cases, runs: options[:runs], warm_up: false) do |(stacks, threads), action|
      Bench::Child.json(CHILD, action, stacks, threads)
    end
    Bench::Table.print(["what", "stacks", "frames", "threads", *HEADINGS],
                       results.map { |(size, action), runs| [action, *sizes(runs), size.last.to_s, *times(runs)] })
  end

  def deep_file(options)
    stacks, depth = options[:deep]
    Dir.mktmpdir("rperf-bench") do |directory|
      path = File.join(directory, "deep.pb.gz")
      Bench::Child.json(DEEP, "make", path, stacks, depth)
      results = Bench::Interleave.call(DEEP_ACTIONS, runs: options[:runs], warm_up: false) do |action|
        Bench::Child.json(DEEP, action, path)
      end
      Bench::Table.print(["what", "stacks", "frames", "depth", *HEADINGS],
                         results.map { |action, runs| [action, *sizes(runs), depth.to_s, *times(runs)] })
    end
  end

  def sizes(runs)
    %i[stacks frames].map { |key| format("%d", Bench::Statistics.median(runs.map { |run| run[key] })) }
  end

  def times(runs)
    gaps, without, took = %i[gap without took].map { |key| runs.map { |run| run[key] } }
    quartiles = Bench::Statistics.quartiles(gaps).map { |it| format("%.1f", it / 1e6) }
    [milliseconds(gaps), quartiles.join(" to "), milliseconds(without), milliseconds(took)]
  end

  def milliseconds(values) = format("%.1f", Bench::Statistics.median(values) / 1e6)
end

Snapshot.run(Snapshot.options(ARGV)) if $PROGRAM_NAME == __FILE__
