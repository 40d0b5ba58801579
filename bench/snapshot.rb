# frozen_string_literal: true

# How long a snapshot, or the end of a session, keeps other threads from the GVL.
#
# A program is profiled until its profile has so many stacks. Then it takes a snapshot,
# while a thread sleeps for 0.1 ms at a time and notes its longest gap. "Again" is the
# second snapshot, whose frames have names already; "Hash" is that of a profile, which
# Rperf.snapshot and Rperf.stop return, but the viewer and the end of a profiled program
# don't need. A process for each.

require_relative "support/child"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Snapshot
  CHILD = File.join(__dir__, "snapshot", "child.rb")
  ACTIONS = ["snapshot", "snapshot again", "clear", "stop", "Hash"].freeze
  # Stacks, and further threads, which are blocked.
  SIZES = [[1_000, 0], [10_000, 0], [100_000, 0], [1_000, 1_000]].freeze
  HEADINGS = ["what", "stacks", "frames", "threads", "longest gap ms", "quartiles", "without ms", "takes ms"].freeze

  module_function

  def options(arguments)
    smoke = { runs: 1, sizes: [[200, 20]] }
    Bench::Options.parse("snapshot", arguments, { runs: 5, sizes: SIZES }, smoke:) do |parser, given|
      parser.on("--stacks N", Integer, "only programs with so many stacks") do |stacks|
        given[:sizes] = SIZES.select { |size,| size == stacks }
      end
    end
  end

  def run(options)
    Bench::Machine.head("How long other threads can't get the GVL, medians of #{options[:runs]} interleaved runs")
    cases = options[:sizes].product(ACTIONS)
    results = Bench::Interleave.call(cases, runs: options[:runs], warm_up: false) do |(stacks, threads), action|
      Bench::Child.json(CHILD, action, stacks, threads)
    end
    Bench::Table.print(HEADINGS, results.map { |(size, action), runs| row(action, size.last, runs) })
  end

  def row(action, threads, runs)
    gaps, without, took = %i[gap without took].map { |key| runs.map { |run| run[key] } }
    stacks, frames = %i[stacks frames].map { |key| Bench::Statistics.median(runs.map { |run| run[key] }) }
    quartiles = Bench::Statistics.quartiles(gaps).map { |it| format("%.1f", it / 1e6) }
    [action, format("%d", stacks), format("%d", frames), threads.to_s, milliseconds(gaps), quartiles.join(" to "),
     milliseconds(without), milliseconds(took)]
  end

  def milliseconds(values) = format("%.1f", Bench::Statistics.median(values) / 1e6)
end

Snapshot.run(Snapshot.options(ARGV)) if $PROGRAM_NAME == __FILE__
