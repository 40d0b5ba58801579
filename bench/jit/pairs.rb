# frozen_string_literal: true

require "rperf"
require_relative "../support/clock"
require_relative "../support/native"

module Jit
  # Pairs of runs of a workload in this process, one as it is and one of a variant: with the
  # profiler in a mode, or with no more than the signals that it sends ("signals").
  class Pairs
    OFF = "off"
    SIGNALS = "signals"
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
    # @param variants [Array<String>] each of which meets all of the workload once
    def warm_up(seconds, variants)
      Bench::Native.load if variants.include?(SIGNALS)
      ends = Bench::Clock.wall + (seconds * 1e9)
      calls = 0
      until calls >= WARM_UP_CALLS && Bench::Clock.wall >= ends
        @workload.call(SMALL)
        calls += 1
      end
      @scale = scale
      variants.each { |variant| measure(variant) }
    end

    # @return [Hash{Symbol => Hash}] what :off and :on took
    def pair(variant)
      %i[off on].shuffle(random: @random).to_h { |side| [side, measure(side == :on ? variant : OFF)] }
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
    def measure(variant)
      GC.start
      start(variant)
      @workload.call(@scale * @lead) if @lead.positive?
      collections = GC.count
      cpu = Bench::Clock.process_cpu
      wall = Bench::Clock.wall
      @workload.call(@scale)
      taken = { wall_ns: Bench::Clock.wall - wall, cpu_ns: Bench::Clock.process_cpu - cpu,
                collections: GC.count - collections }
      taken.merge(stop(variant))
    end

    def start(variant)
      case variant
      when OFF then nil
      when SIGNALS then BenchNative.start_tick_signals(@frequency)
      else Rperf.start(mode: variant.to_sym, frequency: @frequency)
      end
    end

    # @return [Hash] samples a second, of the whole session
    def stop(variant)
      case variant
      when OFF then {}
      when SIGNALS then BenchNative.stop_tick_signals || {}
      else
        profile = Rperf.stop
        { samples_a_second: profile[:sampling_count] * 1e9 / profile[:duration_ns] }
      end
    end
  end
end
