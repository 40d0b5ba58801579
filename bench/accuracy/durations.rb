# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/proc_status"
require_relative "../support/statistics"

module Accuracy
  # How long something took, each time, by the monotonic clock; of CPU time, that less the
  # time for which the thread waited for a CPU.
  #
  # The thread's CPU clock can't be read around short calls: on a busy machine the kernel
  # uses the occasion to see that it is another's turn, and so the ticks too come just
  # when the clock is read. (Seen: up to 7 points for the readings.)
  class Durations
    CLOCK = Process::CLOCK_MONOTONIC
    # Waits for a CPU are longer as a rule. Shorter waits are left in, as chance
    # spreads them evenly.
    WAITED = 1_000_000

    class << self
      # @return [Integer] nanoseconds of the block
      def of
        began = Process.clock_gettime(CLOCK, :nanosecond)
        yield
        Process.clock_gettime(CLOCK, :nanosecond) - began
      end

      # The median, which no disturbance moves.
      # @return [Numeric] nanoseconds of the block
      def usually(&) = Bench::Statistics.median(Array.new(500) { of(&) })

      # @return [Numeric] nanoseconds from one reading of the clock to the next
      def reading
        Bench::Statistics.median(Array.new(500) do
          began = Process.clock_gettime(CLOCK, :nanosecond)
          Process.clock_gettime(CLOCK, :nanosecond) - began
        end)
      end

      # @return [Integer] nanoseconds of waiting since this was asked last
      def waited
        before = @waited || 0
        @waited = Bench::ProcStatus.waited_ns
        @waited - before
      end
    end

    attr_reader :size, :elapsed, :sum

    # @param mode [Symbol] :cpu or :wall: of what time `sum` is
    def initialize(mode)
      @mode = mode
      @size = @elapsed = @sum = 0
      Durations.waited
    end

    # Adds the one that has just ended.
    def add(nanoseconds)
      @elapsed += nanoseconds
      nanoseconds -= waited(nanoseconds) if @mode == :cpu
      @sum += nanoseconds
      @size += 1
    end

    private

    # Not all of the waiting since this was asked last need have been in this duration.
    def waited(nanoseconds)
      longer = nanoseconds - (@sum / [@size, 1].max)
      longer > WAITED ? [Durations.waited, longer].min : 0
    end
  end
end
