# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require_relative "engines"
require_relative "proc_status"

module Bench
  # Programs in processes of their own, with this Ruby and this checkout's rperf.
  module Child
    LIBRARY = File.expand_path("../../lib", __dir__)

    # @param cpu [Integer, nil] the one CPU that it may use
    # @param engine [String, nil] one of {Engines}; nil: as the environment has it
    # @param real_time [Boolean] whether it gets a CPU before all others, where {.real_time?}
    # @return [Array<String>] the command
    def self.command(script, *arguments, cpu: nil, engine: nil, real_time: false)
      command = [RbConfig.ruby, *(Engines.flag(engine) if engine), "-I", LIBRARY, script, *arguments.map(&:to_s)]
      command.unshift("chrt", "--fifo", "1") if real_time && real_time?
      cpu ? ["taskset", "-c", cpu.to_s, *command] : command
    end

    # Runs it to its end.
    # @return [Object] what it printed, as JSON
    def self.json(script, *arguments, **options)
      output, status = Open3.capture2(*command(script, *arguments, **options))
      abort("#{File.basename(script)} #{arguments.join(" ")}: failed (#{status})") unless status.success?
      JSON.parse(output, symbolize_names: true)
    end

    # Whether children can have real-time priority.
    def self.real_time?
      return @real_time if defined?(@real_time)

      @real_time = system("chrt", "--fifo", "1", "true", out: File::NULL, err: File::NULL) || false
    end

    # @return [Integer, nil] a CPU that children can be confined to; nil where that can't be
    def self.one_cpu
      @one_cpu ||= ProcStatus.cpus.first if system("taskset", "-V", out: File::NULL, err: File::NULL)
    end
  end
end
