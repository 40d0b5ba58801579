# frozen_string_literal: true

module Rperf
  module Autostart
    # Hands a finished profile over: to stderr, to its file, and a word about it
    # to the rperf command.
    class Delivery
      # One line for the user. Goes past $stderr, which is the program's.
      def self.say(message)
        # Other Ractors may not touch STDERR.
        STDERR.write("rperf: #{message}\n") if Ractor.main?
      rescue StandardError
        nil # The program has closed its stderr, or put its own methods on it.
      end

      # @param started_ns [Integer] CLOCK_MONOTONIC when profiling started
      def initialize(launch, settings, started_ns)
        @launch = launch
        @settings = settings
        @started_ns = started_ns
      end

      def deliver(profile)
        print_tables(profile)
        write(profile) if @settings.options.output
        @launch.report("delivered")
      end

      private

      def print_tables(profile)
        tables = +""
        tables << profile.verbose_lines if @settings.options.verbose
        tables << profile.stat(stat_figures) if @settings.stat?
        STDERR.write(tables)
      rescue IOError, SystemCallError
        nil # The program has closed its stderr; the file still matters.
      end

      def stat_figures
        {
          command: @settings.stat_command,
          report: @settings.stat_report?,
          lines: @settings.options.show_lines?,
          startup_ns: @settings.launched_ns && [@started_ns - @settings.launched_ns, 0].max,
          **Counters.now
        }
      end

      def write(profile)
        Output.write(profile, @settings.options)
        announce(profile) if @launch.by_command? && !@settings.output_stream?
      rescue Error => e
        self.class.say(e.message)
      end

      def announce(profile)
        self.class.say("wrote #{@settings.shown_output} (#{profile.summary})")
      end
    end
    private_constant :Delivery
  end
end
