# frozen_string_literal: true

require_relative "../support/child"
require_relative "../support/clock"
require_relative "../support/interleave"
require_relative "../support/proc_status"

module Overhead
  # A process that sleeps: how often its threads wake up, seen from outside, so
  # that looking doesn't wake it.
  class Idle
    SLEEPER = File.expand_path("sleeper.rb", __dir__)
    # Seconds after the profiler's start that aren't counted.
    SETTLE = 1
    RUNS = 3

    def initialize(options)
      @options = options
    end

    # @return [Hash{String => Array<Hash>}] runs by profiler
    def run
      Bench::Interleave.call(@options[:profilers], runs: [@options[:runs], RUNS].min, warm_up: false) do |name|
        IO.popen(Bench::Child.command(SLEEPER, name, @options[:frequency]), "r+") do |pipe|
          measure(pipe)
        ensure
          pipe.close_write
        end
      end
    end

    private

    def measure(pipe)
      pipe.readline
      own = Bench::ProcStatus.switches_by_thread(pipe.pid).keys
      pipe.puts
      pipe.readline
      sleep SETTLE
      woken, cpu_ns, seconds = watch(pipe.pid)
      theirs = woken.except(*own)
      { wakeups: woken.values.sum / seconds, profiler_wakeups: theirs.values.sum / seconds,
        profiler_threads: theirs.size, cpu_ns: cpu_ns / seconds }
    end

    def watch(pid)
      started = Bench::Clock.wall
      switches = Bench::ProcStatus.switches_by_thread(pid)
      cpu = Bench::ProcStatus.cpu_ns(pid)
      sleep @options[:idle_seconds]
      woken = Bench::ProcStatus.switches_by_thread(pid).to_h { |thread, now| [thread, now - switches.fetch(thread, 0)] }
      [woken, Bench::ProcStatus.cpu_ns(pid) - cpu, (Bench::Clock.wall - started) / 1e9]
    end
  end
end
