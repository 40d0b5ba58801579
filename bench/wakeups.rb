# frozen_string_literal: true

# How often programs that mostly wait wake rperf's threads, and the CPU time of these: they should wait, too.
#
# Figures are for each piece of work of the program, at so many pieces a second, and for a second where it is idle. All
# sessions run in turn in one process; medians.

require_relative "support/child"
require_relative "support/clock"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/own_threads"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module Wakeups
  SESSIONS = %w[wall cpu].product([999, 99]).freeze
  HEADINGS = ["program", "mode", "Hz", "pieces/s", "switches", "CPU us", "switches/s", "CPU us/s"].freeze

  # Turns of a loop that compute for some 200 us.
  TURNS = 8_000

  # Programs that do as many pieces of work as they can in the seconds that they get; each returns how many.
  module Programs
    def self.work
      turn = 0
      turn += 1 while turn < TURNS
    end

    def self.until_end(seconds)
      ends = Bench::Clock.wall + (seconds * 1e9)
      pieces = 0
      while Bench::Clock.wall < ends
        yield
        pieces += 1
      end
      pieces
    end

    # One thread that works and sleeps for 10 ms.
    def self.sleeper(seconds)
      until_end(seconds) do
        work
        sleep(0.01)
      end
    end

    # Four threads that wait for work, which comes 80 times a second. Each piece waits for a pipe between, too.
    def self.pool(seconds)
      queue = Queue.new
      threads = Array.new(4) { Thread.new { piece while queue.pop } }
      until_end(seconds) do
        queue << true
        sleep(0.0125)
      end
    ensure
      queue.close
      threads.each(&:join)
    end

    def self.piece
      work
      IO.pipe do |reader, writer|
        writer << "x"
        reader.read(1)
      end
      work
    end
    private_class_method :piece

    # Nothing; once, so that figures are for each second.
    def self.idle(seconds)
      sleep(seconds)
      0
    end
  end

  PROGRAMS = %i[sleeper pool idle].freeze

  module_function

  def run(arguments)
    options = Bench::Options.parse("wakeups", arguments, { runs: 5, seconds: 2.0 }, smoke: { runs: 1, seconds: 0.2 })
    Bench::Machine.head("#{options[:runs]} rounds of #{options[:seconds]} s, medians")
    return puts("needs /proc") unless File.exist?("/proc/self/schedstat")

    require "rperf"
    rows = PROGRAMS.flat_map do |program|
      results = Bench::Interleave.call(SESSIONS, runs: options[:runs], warm_up: !options[:smoke]) do |mode, hertz|
        figures(program, mode.to_sym, hertz, options[:seconds])
      end
      results.map { |(mode, hertz), runs| [program.to_s, mode, hertz.to_s, *medians(runs)] }
    end
    Bench::Table.print(HEADINGS, rows)
  end

  # @return [Hash] pieces, switches and ns of CPU for each second
  def figures(program, mode, hertz, seconds)
    Rperf.start(mode:, frequency: hertz)
    # What the start has left to do.
    Programs.public_send(program, seconds / 10)
    before = Bench::OwnThreads.now
    started = Bench::Clock.wall
    pieces = Programs.public_send(program, seconds)
    elapsed = (Bench::Clock.wall - started) / 1e9
    used = Bench::OwnThreads.since(before)
    { pieces:, switches: used.switches, cpu_ns: used.cpu_ns }.transform_values { |number| number / elapsed }
  ensure
    Rperf.stop
  end

  def medians(runs)
    pieces, switches, cpu = %i[pieces switches cpu_ns].map { |key| Bench::Statistics.median(runs.map { |it| it[key] }) }
    each = ->(number, form) { pieces.zero? ? "-" : format(form, number / pieces) }
    [format("%.0f", pieces), each[switches, "%.2f"], each[cpu / 1e3, "%.1f"], format("%.1f", switches),
     format("%.0f", cpu / 1e3)]
  end
end

Wakeups.run(ARGV)
