# frozen_string_literal: true

require "etc"
require "rbconfig"

module Accuracy
  # Other work for all CPUs: one busy process for each.
  module Load
    # Ends by itself if whoever started it is gone.
    BUSY = "parent = Process.ppid; 1_000_000.times { nil } while Process.ppid == parent"

    # Yields while they run.
    def self.during
      pids = Array.new(Etc.nprocessors) { spawn(RbConfig.ruby, "--disable=gems", "-e", BUSY) }
      yield
    ensure
      pids&.each do |pid|
        Process.kill(:KILL, pid)
        Process.wait(pid)
      end
    end
  end
end
