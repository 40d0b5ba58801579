# frozen_string_literal: true

# Whether methods get their true share of time, in both modes at 100 and 1000 Hz.
#
# Methods of different kinds (Ruby loops, long calls into C, sleeps, mixtures) run
# in random order with random sizes; two clocks around each call say what it really
# took. Printed are the shares of truth and profile, and the part of all time that
# the profile puts into the wrong method.

require "optparse"
require "rperf"
require_relative "support/clock"
require_relative "support/machine"
require_relative "support/shares"
require_relative "support/table"

# The methods whose time is known. Each takes a size from 1 to 10; a size is worth
# roughly 0.1 to 0.3 ms.
module Timed
  NUMBERS = Array.new(1500) { |index| (index * 7919) % 1511 }.freeze
  WORDS = %w[sample frame stack node weight label state tick].freeze

  module_function

  def ruby_loop(size)
    sum = 0
    (size * 4000).times { |index| sum += index & 7 }
    sum
  end

  def ruby_calls(size) = (size * 200).times { |number| fold(number, 12) }

  def fold(number, depth) = depth.zero? ? number : fold(number + 1, depth - 1)

  def power(size) = 3.pow(size * 20_000)

  def sort(size) = size.times { NUMBERS.sort }

  def strings(size) = (size * 150).times { |number| WORDS.join("-").sub("node", number.to_s).upcase }

  def doze(size) = sleep(size * 0.0002)

  def compute_and_doze(size)
    ruby_sum = 0
    (size * 2000).times { |index| ruby_sum += index }
    sleep(size * 0.0001)
    ruby_sum
  end
end

# Profiles one random run after the other and compares.
class Accuracy
  METHODS = %w[ruby_loop ruby_calls power sort strings doze compute_and_doze].freeze

  def self.seconds(arguments)
    seconds = 5.0
    OptionParser.new do |parser|
      parser.banner = "usage: bin/bench accuracy [options]"
      parser.on("--seconds S", Float, "length of each of the four runs (default 5)") { |value| seconds = value }
      parser.on("--smoke", "short runs, to see that it works") { seconds = 0.3 }
    end.parse!(arguments)
    seconds
  end

  def initialize(seconds)
    @seconds = seconds
  end

  def run
    puts Bench::Machine.describe, ""
    runs = [100, 1000].product(%i[cpu wall]).map { |frequency, mode| measure(mode, frequency) }
    headings = ["method", *runs.flat_map { |run| ["#{run[:name]} true %", "profile %"] }]
    Bench::Table.print(headings, [*METHODS, "other"].map { |name| row(name, runs) })
    puts
    runs.each { |run| puts summary(run) }
  end

  private

  def measure(mode, frequency)
    truth = METHODS.to_h { |name| [name, 0] }
    began = ended = 0
    profile = Rperf.start(mode:, frequency:) do
      began = clock(mode)
      work(mode, truth)
      ended = clock(mode)
    end
    truth["other"] = ended - began - truth.values.sum
    { name: "#{mode} #{frequency}", truth:, measured: Bench::Shares.by_method(profile, METHODS) }
  end

  def work(mode, truth)
    random = Random.new(42)
    stop = Bench::Clock.wall + (@seconds * 1e9)
    while Bench::Clock.wall < stop
      name = METHODS.sample(random:)
      size = random.rand(1..10)
      started = clock(mode)
      Timed.public_send(name, size)
      truth[name] += clock(mode) - started
    end
  end

  def clock(mode) = mode == :cpu ? Bench::Clock.thread_cpu : Bench::Clock.wall

  def row(name, runs)
    [name, *runs.flat_map { |run| [share(run[:truth], name), share(run[:measured], name)] }]
  end

  def share(sums, name) = format("%.2f", sums[name] * 100.0 / sums.values.sum)

  def summary(run)
    truth, measured = run.values_at(:truth, :measured)
    format("%<name>-10s misplaced %<misplaced>5.2f %%   total %<total>8.1f ms, true %<truth>8.1f ms",
           name: run[:name], misplaced: Bench::Shares.misplaced(truth, measured) * 100,
           total: measured.values.sum / 1e6, truth: truth.values.sum / 1e6)
  end
end

Accuracy.new(Accuracy.seconds(ARGV)).run if $PROGRAM_NAME == __FILE__
