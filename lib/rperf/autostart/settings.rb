# frozen_string_literal: true

module Rperf
  module Autostart
    # The RPERF_* variables as options; ArgumentError for values that aren't allowed.
    class Settings
      attr_reader :options, :launched_ns

      def initialize(variables)
        @variables = variables
        @options = read_options
        @launched_ns = Integer(variables["LAUNCHED_NS"], exception: false) if variables.key?("LAUNCHED_NS")
        @folder = working_folder
      end

      def stat_command = @variables.fetch("STAT_COMMAND") { $PROGRAM_NAME }
      def stat? = @variables["STAT"] == "1"
      def stat_report? = @variables["STAT_REPORT"] == "1"

      # What has the program profiled, for messages.
      def initiator
        return "RPERF_ENABLED=1" unless @variables.key?("STATUS_FILE")

        stat? ? "rperf stat" : "rperf record"
      end

      # The output as the user would write it.
      def shown_output = @folder ? options.output&.delete_prefix("#{@folder}/") : options.output

      def output_stream? = options.output&.start_with?("/dev/", "/proc/") || false

      private

      # A program can run in a folder that was deleted, and be profiled there.
      def working_folder
        Dir.pwd
      rescue SystemCallError
        nil
      end

      def read_options
        Options.new(
          frequency: integer("FREQUENCY", 1000),
          mode: symbol("MODE") || (stat? ? :wall : :cpu),
          output: @variables.fetch("OUTPUT") { stat? ? nil : "rperf.data" },
          verbose: @variables["VERBOSE"] == "1",
          format: symbol("FORMAT"),
          signal: @variables["SIGNAL"] == "false" ? false : integer("SIGNAL", nil),
          aggregate: @variables["AGGREGATE"] != "0",
          lines: switch("LINES"),
          leaf: switch("LEAF")
        )
      rescue ArgumentError => e
        name, rest = e.message.split(":", 2)
        raise ArgumentError, "RPERF_#{name.upcase}:#{rest}"
      end

      def symbol(name)
        value = @variables[name].to_s
        value.empty? ? nil : value.to_sym
      end

      def switch(name)
        case value = @variables[name].to_s
        when "" then nil
        when "1" then true
        when "0" then false
        else raise ArgumentError, "#{name}: must be 1 or 0, not #{Options.shown(value)}"
        end
      end

      # Text that is no number goes on as it is, to be refused with the rest.
      def integer(name, default)
        value = @variables[name].to_s
        return default if value.empty?

        Integer(value, 10, exception: false) || value
      end
    end
    private_constant :Settings
  end
end
