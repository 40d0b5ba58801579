# frozen_string_literal: true

# What the apps of the specs do: tasks of known kinds, each in a method of its own, by whose frame its samples are
# found. The time that they took, by label, is written to times-PID.json in the current folder when the process ends.

require "json"

# For requests and jobs.
module Tasks
  TIMES = Hash.new(0)
  LOCK = Mutex.new
  private_constant :TIMES, :LOCK

  class << self
    def compute = spin(0.006)

    def fetch = sleep(0.008)

    def mix
      spin(0.003)
      sleep(0.004)
      Array.new(2000, &:to_s).size
    end

    # Its time counts, too.
    def fail
      spin(0.003)
      raise "as it should"
    end

    # Measures the block for the label that `label` returns after it.
    def measure(label)
      started = now
      yield
    ensure
      time = now - started
      LOCK.synchronize { TIMES[label.call] += time }
    end

    def write_times
      File.write("times-#{Process.pid}.json", JSON.generate(TIMES))
    end

    private

    # Uses the CPU.
    def spin(seconds)
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

at_exit { Tasks.write_times }

# With PROFILE the app profiles itself, into that file.
if ENV["PROFILE"]
  require "rperf"
  Rperf.start(mode: :wall, output: ENV["PROFILE"])
  at_exit { Rperf.stop }
end
