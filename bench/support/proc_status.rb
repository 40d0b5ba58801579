# frozen_string_literal: true

module Bench
  # Linux's figures for processes, from /proc; nil or empty elsewhere.
  module ProcStatus
    # @return [Integer, nil] resident memory of this process in KiB, now and at its peak
    def self.rss_kb = field("/proc/self/status", "VmRSS")

    def self.peak_rss_kb = field("/proc/self/status", "VmHWM")

    # @return [Hash{Integer => Integer}] how often each thread of a process stopped
    #   running, to sleep or for another: as often it was woken up
    def self.switches_by_thread(pid)
      tasks(pid).to_h do |directory|
        switches = %w[voluntary_ctxt_switches nonvoluntary_ctxt_switches].sum do |name|
          field("#{directory}/status", name) || 0
        end
        [Integer(File.basename(directory)), switches]
      end
    end

    # @return [Integer] nanoseconds on a CPU, of all threads that are there
    def self.cpu_ns(pid) = tasks(pid).sum { |directory| read("#{directory}/schedstat").to_i }

    # @return [Integer] nanoseconds for which this thread could have run but had no CPU
    def self.waited_ns = read("/proc/thread-self/schedstat").split.fetch(1, 0).to_i

    # @return [Array<Integer>] the CPUs that this process may use
    def self.cpus
      list = read("/proc/self/status")[/^Cpus_allowed_list:\s*(\S+)/, 1].to_s
      list.split(",").flat_map do |range|
        first, last = range.split("-").map { |number| Integer(number) }
        (first..(last || first)).to_a
      end
    end

    def self.tasks(pid) = Dir.glob("/proc/#{pid}/task/*")

    def self.field(path, name) = read(path)[/^#{name}:\s*(\d+)/, 1]&.to_i

    def self.read(path)
      File.read(path)
    rescue Errno::ENOENT, Errno::ESRCH
      "" # A thread that has just ended, or no Linux.
    end
    private_class_method :tasks, :field, :read
  end
end
