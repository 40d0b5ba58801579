# frozen_string_literal: true

module Bench
  # The two clocks that everything here is measured by, in nanoseconds.
  module Clock
    def self.wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    def self.thread_cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)

    def self.process_cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  end
end
