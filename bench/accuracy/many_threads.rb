# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/engines"
require_relative "../support/shares"
require_relative "many_threads/draw"
require_relative "scenario"

module Accuracy
  # 200 threads, each of which works and naps in turn, with methods of known shares of both.
  # Three kinds of threads call different ones, so that a thread's own shares aren't the
  # program's. Clocks around each call are the truth: the thread's CPU clock for running
  # time, and what the wall clock has beyond it for time that the thread didn't run. The
  # figures, in points, are the worst method's share of all running time, and (in wall mode)
  # of all other time. In wall mode the naps have no part in the first one: most of the CPU
  # time that a nap takes is the kernel's, without the GVL, which isn't running time there.
  # Beside each figure is what it would be on average if the samples were nothing but a draw:
  # each thread's methods at random, with the thread's true shares (see {Draw}).
  class ManyThreads < Scenario
    THREADS = 200
    # Microseconds of work and milliseconds of naps in a round, by method, for each kind of thread.
    KINDS = [
      { long_work: 150, long_nap: 60, short_work: 50, short_nap: 10 },
      { middle_work: 100, middle_nap: 30, long_work: 100, long_nap: 40 },
      { short_work: 60, short_nap: 20, middle_work: 140, middle_nap: 50 }
    ].freeze
    WORKS = %w[long_work middle_work short_work].freeze
    NAMES = [*WORKS, "long_nap", "middle_nap", "short_nap"].freeze

    def engines = Bench::Engines::NAMES
    def frequencies = [1000]
    def bounds = { "running, points" => (..3.0), "not running, points" => (..3.0) }

    # Takes nothing: what the clocks around a call take themselves. The profile has that as the caller's.
    def nothing(_) = nil

    def long_work(length) = spin(length)
    def middle_work(length) = spin(length)
    def short_work(length) = spin(length)
    def long_nap(length) = nap(length)
    def middle_nap(length) = nap(length)
    def short_nap(length) = nap(length)

    # @return [Hash{String => Float}] the figures
    def call(measurement)
      times = nil
      @of_clocks = of_clocks
      profile = measurement.profile { times = run_threads(measurement) }
      off_gvl, running = Bench::Shares.off_gvl(profile)
      ran, others = %i[first last].map { |which| times.map { |it| it.transform_values(&which) } }
      return figures(measurement, "running", ran, running, NAMES) if measurement.mode == :cpu

      { **figures(measurement, "running", ran, running, WORKS),
        **figures(measurement, "not running", others, off_gvl, NAMES) }
    end

    private

    # @param by_thread [Array<Hash{String => Integer}>] each thread's true times by method
    # @return [Hash{String => Float}] of the methods with these names
    def figures(measurement, what, by_thread, part, names)
      measured = Bench::Shares.by_method(part, NAMES).slice(*names)
      by_thread = by_thread.map { |times| times.slice(*names) }
      truth = sums(by_thread, names)
      measurement.details(truth, measured)
      samples = part[:samples].sum { |row| row[4] }
      draw = Draw.new(by_thread, measured.values.sum / samples.to_f, memoryless: what == "running")
      { "#{what}, points" => Bench::Shares.points(truth, measured).values.map(&:abs).max,
        "#{what}, points by chance" => draw.worst_points(truth, measurement.random) }
    end

    # @return [Array<Hash{String => Array(Integer, Integer)}>] of each thread: nanoseconds running and others, by method
    def run_threads(measurement)
      Array.new(THREADS) do |number|
        Thread.new do
          times = Hash.new { |all, name| all[name] = [0, 0] }
          measurement.until_over { round(KINDS[number % KINDS.size], times) }
          times
        end
      end.map(&:value)
    end

    def round(kind, times)
      kind.each do |name, length|
        ran, others = timed(name, length)
        sums = times[name.name]
        sums[0] += ran - @of_clocks
        sums[1] += others
      end
    end

    # @return [Array(Integer, Integer)] nanoseconds running and others
    def timed(name, length)
      wall = Bench::Clock.wall
      cpu = Bench::Clock.thread_cpu
      public_send(name, length)
      ran = Bench::Clock.thread_cpu - cpu
      [ran, Bench::Clock.wall - wall - ran]
    end

    # @return [Integer] nanoseconds
    def of_clocks = Array.new(2000) { timed(:nothing, 0).first }.sort.fetch(1000)

    # Uses so much CPU time, in microseconds.
    def spin(length)
      ends = Bench::Clock.thread_cpu + (length * 1000)
      nil while Bench::Clock.thread_cpu < ends
    end

    def nap(milliseconds) = sleep(milliseconds / 1000.0)

    def sums(by_thread, names) = names.to_h { |name| [name, by_thread.sum { |times| times.fetch(name, 0) }] }
  end
end
