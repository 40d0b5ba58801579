# frozen_string_literal: true

require "rperf"
require_relative "../support/clock"

module Jit
  # Pairs of runs of a workload in this process, one without and one with a profiler.
  class Pairs
    # Calls of a small piece before anything is timed: JITs compile what was called some
    # ten times.
    WARM_UP_CALLS = 60
    SMALL = 0.02
    # How long a run must be for its speed to be known.
    LONG_ENOUGH = 50_000_000

    # @param workload [Proc] takes a scale
    # @param seconds [Float] how long a run is to be
    # @param lead [Float] part of a run that comes first in each, untimed
    def initialize(workload, seconds:, lead:, frequency:, random: Random.new)
      @workload = workload
      @lead = lead
      @frequency = frequency
      @random = random
      @scale = 1.0
      @seconds = seconds
    end

    # @param seconds [Float] how long the workload runs before anything is timed
    # @param modes [Array<Symbol>] of the profiler, which meets all of the workload once
    def warm_up(seconds, modes)
      ends = Bench::Clock.wall + (seconds * 1e9)
      calls = 0
      until calls >= WARM_UP_CALLS && Bench::Clock.wall >= ends
        @workload.call(SMALL)
        calls += 1
      end
      @scale = scale
      modes.each { |mode| measure(mode) }
    end

    # @param mode [Symbol, nil] nil: without a profiler as well
    # @return [Hash{Symbol => Hash}] what :off and :on took
    def pair(mode)
      %i[off on].shuffle(random: @random).to_h { |side| [side, measure(side == :on ? mode : nil)] }
    end

    private

    # At which the workload takes as long as it should.
    def scale
      scale = SMALL
      scale *= 2 while (took = time(scale)) < LONG_ENOUGH
      scale * @seconds * 1e9 / [took, time(scale), time(scale)].min
    end

    def time(scale)
      began = Bench::Clock.wall
      @workload.call(scale)
      Bench::Clock.wall - began
    end

    # Only the workload's own time counts: not what starting and stopping takes, nor the
    # time in which a new session sees all stacks for the first time.
    def measure(mode)
      GC.start
      Rperf.start(mode:, frequency: @frequency) if mode
      @workload.call(@scale * @lead) if @lead.positive?
      cpu = Bench::Clock.process_cpu
      wall = Bench::Clock.wall
      @workload.call(@scale)
      taken = { wall_ns: Bench::Clock.wall - wall, cpu_ns: Bench::Clock.process_cpu - cpu }
      mode ? taken.merge(samples_a_second: samples_a_second(Rperf.stop)) : taken
    end

    # Of the whole session.
    def samples_a_second(profile)
      profile[:sampling_count] * 1e9 / profile[:duration_ns]
    end
  end
end
