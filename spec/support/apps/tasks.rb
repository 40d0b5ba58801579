# frozen_string_literal: true

# What the apps of the specs do: tasks of known kinds, each in a method of its own, by whose frame its samples are
# found. How many seconds they took in all and how many they were, by label, is written to measured-PID.json in the
# current directory when the process ends.

require "json"

# For requests and jobs.
module Tasks
  MEASURED = Hash.new { |measured, label| measured[label] = [0.0, 0] }
  LOCK = Mutex.new
  private_constant :MEASURED, :LOCK

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
      LOCK.synchronize { add(label.call, time) }
    end

    def write_measured
      File.write("measured-#{Process.pid}.json", JSON.generate(MEASURED))
    end

    private

    def add(label, time)
      sums = MEASURED[label]
      sums[0] += time
      sums[1] += 1
    end

    # Uses the CPU.
    def spin(seconds)
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

at_exit { Tasks.write_measured }

# With PROFILE the app profiles itself, into that file; with DEFER too, only in sections.
if ENV["PROFILE"]
  require "rperf"
  Rperf.start(mode: :wall, output: ENV["PROFILE"], defer: ENV.key?("DEFER"))
  at_exit { Rperf.stop }
end
