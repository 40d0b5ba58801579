# frozen_string_literal: true

require "etc"
require "rbconfig"

module Bench
  # The facts about a machine without which a figure is worth nothing.
  module Machine
    # Prints the head of all benchmarks.
    # @param notes [Array<String>] how this one measures
    def self.head(*notes)
      puts describe, *notes
      load = load_average
      puts "Other programs are running (load average #{load}): a quiet machine gives better figures." if load > 0.7
      puts
    end

    def self.describe
      system = Etc.uname
      "#{RUBY_DESCRIPTION}\n#{cpu}, #{Etc.nprocessors} CPUs; #{system[:sysname]} #{system[:release]}; " \
        "#{Time.now.strftime("%Y-%m-%d")}"
    end

    def self.load_average
      File.read("/proc/loadavg").to_f
    rescue Errno::ENOENT
      0.0
    end

    def self.cpu
      File.read("/proc/cpuinfo")[/^model name\s*:\s*(.+)/, 1] || RbConfig::CONFIG["host_cpu"]
    rescue Errno::ENOENT
      RbConfig::CONFIG["host_cpu"]
    end
    private_class_method :cpu, :load_average
  end
end
