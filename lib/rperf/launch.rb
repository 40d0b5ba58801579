# frozen_string_literal: true

module Rperf
  # What the environment says about a profile that starts with the program.
  # Read by Rubies of any age: no syntax newer than Ruby 2.5.
  class Launch
    LOADER = "-rrperf"
    PREFIX = "RPERF_"
    private_constant :LOADER, :PREFIX

    # The RPERF_* variables without their prefix, such as "OUTPUT".
    attr_reader :variables

    # Takes the variables out of `environment` and puts back what `rperf record`
    # or `rperf stat` changed there, so that the program and what it starts see
    # the environment that the user gave them.
    def self.take(environment)
      ours = environment.select { |name, _| name.start_with?(PREFIX) }
      ours.each_key { |name| environment.delete(name) }
      launch = new(ours.transform_keys { |name| name[PREFIX.size..-1] })
      launch.restore(environment) if launch.by_command?
      launch
    end

    def initialize(variables)
      @variables = variables
    end

    # Whether the rperf command started this process (or its parents).
    def by_command?
      variables.key?("STATUS_FILE")
    end

    def restore(environment)
      restore_variable(environment, "RUBYOPT", LOADER, " ")
      restore_variable(environment, "RUBYLIB", File.expand_path("..", __dir__), ":")
    end

    # Adds a line for the rperf command, which waits for the program to end.
    def report(line)
      return unless by_command?

      File.open(variables["STATUS_FILE"], "a") { |file| file.syswrite("#{line}\n") }
    rescue SystemCallError
      nil # The command has ended before its grandchild did; nobody reads it now.
    end

    # Whether this is the first Ruby of the command that wants to be profiled.
    def first?
      return true unless by_command?

      # The folder is made by one atomic call, so that one of two wins.
      Dir.mkdir("#{variables["STATUS_FILE"]}.taken")
      true
    rescue SystemCallError
      false
    end

    # Says why the program runs without a profile.
    def refuse(reason)
      STDERR.write("rperf: #{reason}; running without profiling\n")
      report("refused #{reason}")
    rescue IOError, SystemCallError
      nil # No stderr to write to: the program still runs.
    end

    private

    # A value that somebody has added to since only loses our part of it.
    def restore_variable(environment, name, ours, separator)
      original = variables["ORIGINAL_#{name}"]
      value = environment[name]
      return if value.nil?

      if value == [ours, original].compact.join(separator)
        environment[name] = original
      else
        parts = value.split(separator)
        parts.delete_at(parts.index(ours) || parts.size)
        environment[name] = parts.empty? ? nil : parts.join(separator)
      end
    end
  end
  private_constant :Launch
end
