# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/engines"
require_relative "../support/proc_status"
require_relative "../support/shares"
require_relative "scenario"

module Accuracy
  # A busy main thread that makes a short thread now and then. The figures:
  #
  # - samples kept: how many there are, of one for each interval that the main thread ran by
  #   its CPU clock, without the time in collections, whose ticks make none. A new thread makes
  #   itself the VM's running one before it has the GVL, so that what is asked of the running
  #   one doesn't reach the one that runs.
  # - without threads: the same of a run that makes none. If that isn't 100 %, the machine is
  #   too busy: a wait for a CPU has a sample, too, at its end, and new threads wait as well.
  # - asleep: for how much of the time the main thread neither ran nor waited for a CPU. It
  #   waits for the GVL then, which the new threads have or hand on.
  # - points: by how many the worst method's share of the time is off.
  class NewThreads < Scenario
    PARTS = { "six_tenths" => 0.6, "three_tenths" => 0.3, "one_tenth" => 0.1 }.freeze

    # @param milliseconds [Integer] from one thread to the next
    def initialize(milliseconds)
      super()
      @period = milliseconds * 1_000_000
    end

    def engines = Bench::Engines::NAMES
    def frequencies = [1000]
    def bounds = { "samples kept %" => (95..) }

    def six_tenths(length) = spin(length)
    def three_tenths(length) = spin(length)
    def one_tenth(length) = spin(length)

    # @return [Hash{String => Float}] the figures
    def call(measurement)
      alone, = profile(measurement) { PARTS.each { |name, part| public_send(name, @period * part) } }
      kept, asleep, profile = profile(measurement) do
        Thread.new { 10.times { |number| number * number } }
        PARTS.each { |name, part| measurement.time(name) { public_send(name, @period * part) } }
      end
      { "samples kept %" => kept * 100, "without threads %" => alone * 100, "asleep %" => asleep * 100,
        "points" => measurement.points(profile, PARTS.keys) }
    end

    private

    # @return [Array(Float, Float, Hash)] samples for each interval, the part of the time that
    #   the main thread was asleep, and the profile
    def profile(measurement, &)
      ran = waited = nil
      profile = measurement.profile do
        ran = Bench::Clock.thread_cpu
        waited = Bench::ProcStatus.waited_ns
        measurement.until_over(&)
        ran = Bench::Clock.thread_cpu - ran
        waited = Bench::ProcStatus.waited_ns - waited
      end
      elapsed = measurement.total_elapsed
      intervals = (ran - Bench::Shares.collecting(profile)) * profile[:frequency] / 1e9
      [profile[:sampling_count] / intervals, (elapsed - waited - ran).fdiv(elapsed), profile]
    end

    def spin(length)
      ends = Bench::Clock.wall + length
      nil while Bench::Clock.wall < ends
    end
  end
end
