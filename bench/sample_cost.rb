# frozen_string_literal: true

# The cost of a sample, against a bare rb_profile_frames, by depth of the stack.
#
# "Stable": the stack is the last one; "half changed": its upper half is looked up
# in the call tree; "all changed": every frame is. "Clocks" are those that a sample
# reads besides; the thread's CPU clock is most of it, and read in few samples.

require "rperf"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module SampleCost
  DEPTHS = [10, 50, 100, 300].freeze
  # The part of the last stack that is known from the root, in thousandths.
  STACKS = { "stable" => 1000, "half changed" => 500, "all changed" => 0 }.freeze
  LINES = { "no" => false, "yes" => true }.freeze
  HEADINGS = ["depth", "stack", "lines", "bare ns", "sample ns", "ratio", "quartiles", "ns/frame more",
              "clocks ns"].freeze
  NATIVE = Rperf.const_get(:Native)

  module_function

  def run(options)
    Bench::Machine.head("#{options[:runs]} interleaved runs of #{options[:rounds]} x 100 samples each, medians")
    cases = DEPTHS.product(STACKS.keys, LINES.keys)
    results = Bench::Interleave.call(cases, runs: options[:runs]) do |depth, stack, lines|
      at_depth(depth) { NATIVE.sample_cost(options[:rounds], STACKS.fetch(stack), LINES.fetch(lines)) }
    end
    Bench::Table.print(HEADINGS, results.map { |names, runs| row(names, runs) })
    causes = Array.new(options[:runs]) { cause_cost(options[:rounds]) }
    puts format("\nA piece of a collection costs %.1f ns more as its cause is told.", Bench::Statistics.median(causes))
  end

  def cause_cost(rounds)
    cost = nil
    Rperf.start(mode: :wall) { cost = NATIVE.gc_cause_cost(rounds) }
    cost
  end

  # On a thread of its own, which begins with hardly a frame.
  def at_depth(depth, &)
    @least ||= Thread.new { descend(0) { NATIVE.sample_cost(1, 1000, false) } }.value[:depth]
    Thread.new { descend(depth - @least, &) }.value
  end

  def descend(more, &) = more.positive? ? descend(more - 1, &) : yield

  def row((_, stack, lines), runs)
    bare, sampled, clocks = %i[bare_ns sampled_ns clocks_ns].map { |key| runs.map { |run| run[key] } }
    ratios = Bench::Statistics.ratios(sampled, bare)
    depth = runs.first[:depth]
    more = sampled.zip(bare).map { |sample, alone| (sample - alone) / depth }
    [depth.to_s, stack, lines, ns(bare), ns(sampled), format("%.2f", Bench::Statistics.median(ratios)),
     Bench::Statistics.quartiles(ratios).map { |it| format("%.2f", it) }.join(" to "),
     format("%.1f", Bench::Statistics.median(more)), ns(clocks)]
  end

  def ns(values) = format("%.0f", Bench::Statistics.median(values))
end

if $PROGRAM_NAME == __FILE__
  SampleCost.run(Bench::Options.parse("sample-cost", ARGV, { runs: 10, rounds: 50 }, smoke: { runs: 1, rounds: 2 }))
end
