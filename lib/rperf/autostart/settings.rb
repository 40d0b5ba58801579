# frozen_string_literal: true

module Rperf
  module Autostart
    # The RPERF_* variables, or a session's settings, as options; ArgumentError for values that aren't allowed.
    class Settings
      INHERITANCES = { "" => false, "0" => false, "fork" => :fork, "1" => true }.freeze
      private_constant :INHERITANCES

      attr_reader :options

      def initialize(launch)
        @variables = launch.variables
        # Who has made a session writes the file, and sees to the children.
        @options = launch.folder ? read_options(nil, false) : read_options(output, inherit)
      end

      # Whatever the locale's encoding is.
      def stat_command = @variables.fetch("STAT_COMMAND") { $PROGRAM_NAME }.dup.force_encoding(Encoding::UTF_8).scrub

      def stat? = @variables["STAT"] == "1"
      def stat_report? = @variables["STAT_REPORT"] == "1"

      # The environment with which the same begins again, wherever the program is by then.
      def variables
        output = @options.output
        all = output ? @variables.merge("OUTPUT" => output) : @variables
        all.transform_keys { |name| "RPERF_#{name}" }
      end

      # What has the program profiled, for messages.
      def initiator = @variables.fetch("INITIATOR", "RPERF_ENABLED=1")

      private

      def read_options(output, inherit)
        Options.new(
          frequency: integer("FREQUENCY", 1000),
          mode: symbol("MODE") || (stat? ? :wall : :cpu),
          output:,
          verbose: @variables["VERBOSE"] == "1",
          format: symbol("FORMAT"),
          signal: @variables["SIGNAL"] == "false" ? false : integer("SIGNAL", nil),
          aggregate: @variables["AGGREGATE"] != "0",
          lines: switch("LINES"),
          leaf: switch("LEAF"),
          inherit:
        )
      rescue ArgumentError => e
        name, rest = e.message.split(":", 2)
        raise ArgumentError, "RPERF_#{name.upcase}:#{rest}"
      end

      def output = @variables.fetch("OUTPUT") { stat? ? nil : "rperf.data" }

      def inherit
        value = @variables["INHERIT"].to_s
        INHERITANCES.fetch(value) do
          raise ArgumentError, "RPERF_INHERIT: must be 0, fork or 1, not #{Options.shown(value)}"
        end
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
