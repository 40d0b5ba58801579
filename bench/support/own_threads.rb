# frozen_string_literal: true

module Bench
  # What rperf's threads in this process have used, from /proc; nothing where the system doesn't tell.
  module OwnThreads
    # ns of CPU, and how often a thread stopped running.
    Used = Data.define(:cpu_ns, :switches) do
      def -(other) = with(cpu_ns: cpu_ns - other.cpu_ns, switches: switches - other.switches)
    end

    NOTHING = Used.new(cpu_ns: 0, switches: 0)

    # @return [Hash{String => Used}] by thread
    def self.now
      Dir["/proc/self/task/*"].filter_map do |directory|
        next unless File.read("#{directory}/comm").start_with?("rperf")

        # See "schedstat" in Linux's documentation: ns on a CPU, ns of waiting for one, and slices.
        cpu_ns, _, switches = File.read("#{directory}/schedstat").split.map { |number| Integer(number) }
        [directory, Used.new(cpu_ns:, switches:)]
      rescue Errno::ENOENT, Errno::ESRCH
        nil # It has just ended.
      end.to_h
    end

    # @param before [Hash] what {.now} said
    # @return [Used] of all threads that are there
    def self.since(before)
      parts = now.map { |thread, used| used - before.fetch(thread, NOTHING) }
      Used.new(cpu_ns: parts.sum(&:cpu_ns), switches: parts.sum(&:switches))
    end
  end
end
