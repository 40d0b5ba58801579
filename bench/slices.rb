# frozen_string_literal: true

# Whether short slices between sleeps are seen, on all CPUs and pinned to one.
#
# A thread spins for a while and sleeps, again and again; the share of running time
# in a wall profile is set against the clock's. On one CPU this shows whether the
# timer's thread gets to run in time. The case "locked" has a section of 4.4 % in
# step with a 1 ms clock, which a timer without dither misses or doubles.

require "json"
require "open3"
require "optparse"
require "rperf"
require_relative "support/clock"
require_relative "support/machine"
require_relative "support/shares"
require_relative "support/table"

# The programs; each returns [profile's share, true share].
module Slices
  MILLISECOND = 1_000_000
  CASES = {
    "300 us / 5 ms" => ->(seconds) { spin_and_sleep(seconds, 0.3) },
    "3 ms / 5 ms" => ->(seconds) { spin_and_sleep(seconds, 3) },
    "locked" => ->(seconds) { locked(seconds) }
  }.freeze

  module_function

  def spin_until(instant)
    nil while Bench::Clock.wall < instant
  end

  def short_section(instant) = spin_until(instant)

  def long_section(instant) = spin_until(instant)

  def spin_and_sleep(seconds, spin_ms)
    ran = elapsed = 0
    profile = Rperf.start(mode: :wall, frequency: 1000) do
      began = Bench::Clock.wall
      until Bench::Clock.wall - began > seconds * 1e9
        started = Bench::Clock.wall
        spin_until(started + (spin_ms * MILLISECOND))
        ran += Bench::Clock.wall - started
        sleep 0.005
      end
      elapsed = Bench::Clock.wall - began
    end
    running, total = Bench::Shares.running(profile)
    [running.fdiv(total), ran.fdiv(elapsed)]
  end

  # The first 44 us of every millisecond of the clock are one method, the rest another.
  def locked(seconds)
    truth = 0
    began = Bench::Clock.wall
    profile = Rperf.start(mode: :wall, frequency: 1000) do
      began = Bench::Clock.wall
      until Bench::Clock.wall - began > seconds * 1e9
        started = Bench::Clock.wall
        boundary = started - (started % MILLISECOND)
        short_section(boundary + 44_000)
        middle = Bench::Clock.wall
        truth += middle - started
        long_section(boundary + MILLISECOND)
      end
    end
    elapsed = profile[:duration_ns]
    measured = Bench::Shares.by_method(profile, %w[short_section long_section])
    [measured["short_section"].fdiv(measured.values.sum), truth.fdiv(elapsed)]
  end

  def self.each_in_its_process(seconds)
    rows = %w[all 0].product(CASES.keys).filter_map do |cpus, name|
      command = [RbConfig.ruby, "-I", File.expand_path("../lib", __dir__), __FILE__,
                 "--case", name, "--seconds", seconds.to_s]
      command = ["taskset", "-c", "0", *command] if cpus == "0"
      next if cpus == "0" && !taskset?

      warn("#{name}, CPUs: #{cpus} ...")
      output, status = Open3.capture2(*command)
      abort("bench/slices: '#{name}' failed (#{status})") unless status.success?
      row(name, cpus, *JSON.parse(output))
    end
    Bench::Table.print(["run / sleep", "CPUs", "true %", "profile %", "off by (points)"], rows)
  end

  def self.row(name, cpus, measured, truth)
    [name, cpus, format("%.2f", truth * 100), format("%.2f", measured * 100),
     format("%+.2f", (measured - truth) * 100)]
  end

  def self.taskset? = system("taskset", "-c", "0", "true", out: File::NULL, err: File::NULL)
end

if $PROGRAM_NAME == __FILE__
  seconds = 10.0
  chosen = nil
  OptionParser.new do |parser|
    parser.banner = "usage: bin/bench slices [options]"
    parser.on("--seconds S", Float, "length of each run (default 10)") { |value| seconds = value }
    parser.on("--case NAME", Slices::CASES.keys, "run one, here, and print its shares as JSON") { |name| chosen = name }
    parser.on("--smoke", "short runs, to see that it works") { seconds = 0.3 }
  end.parse!
  if chosen
    puts JSON.generate(Slices::CASES[chosen].call(seconds))
  else
    puts Bench::Machine.describe, ""
    Slices.each_in_its_process(seconds)
  end
end
