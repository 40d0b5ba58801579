# frozen_string_literal: true

require_relative "options"

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
        @options = read_options(launch.folder.nil?)
      end

      # Whatever the locale's encoding is.
      def stat_command = @variables.fetch("STAT_COMMAND") { $PROGRAM_NAME }.dup.force_encoding(Encoding::UTF_8).scrub

      def stat? = switch("STAT", false)
      def stat_report? = switch("STAT_REPORT", false)

      # The environment with which the same begins again, wherever the program is by then.
      def variables
        output = @options.output
        all = output ? @variables.merge("OUTPUT" => output) : @variables
        all.transform_keys { |name| "RPERF_#{name}" }
      end

      # What has the program profiled, for messages.
      def initiator = @variables.fetch("INITIATOR", "RPERF_ENABLED=1")

      private

      def read_options(alone)
        inherit = alone ? inheritance : false
        refuse_combinations(inherit)
        # It is heeded at the end, and refused now.
        stat_report?
        Options.new(
          frequency: integer("FREQUENCY", 1000),
          mode: choice("MODE", Options::MODES) || (stat? ? :wall : :cpu),
          output: alone ? output : nil,
          verbose: switch("VERBOSE", false),
          format: choice("FORMAT", Options::FORMATS),
          signal:,
          aggregate: switch("AGGREGATE", true),
          lines: switch("LINES", nil),
          capture: choice("CAPTURE", Options::CAPTURES),
          inherit:
        )
      rescue ArgumentError => e
        name, rest = e.message.split(":", 2)
        raise ArgumentError, "RPERF_#{name.upcase}:#{rest}"
      end

      # Options would tell of arguments, not of variables.
      def refuse_combinations(inherit)
        if inherit && !switch("AGGREGATE", true)
          reject("INHERIT", @variables["INHERIT"], "0 with RPERF_AGGREGATE=0")
        elsif choice("CAPTURE", Options::CAPTURES) == :tick && signal == false
          reject("CAPTURE", @variables["CAPTURE"], "safepoint with RPERF_SIGNAL=false")
        end
      end

      def output = @variables.fetch("OUTPUT") { stat? ? nil : "rperf.data" }

      def inheritance
        value = @variables["INHERIT"].to_s
        INHERITANCES.fetch(value) { reject("INHERIT", value, "0, fork or 1") }
      end

      def signal
        return false if @variables["SIGNAL"] == "false"

        number = integer("SIGNAL", nil)
        return number if number.nil? || number.is_a?(Integer)

        reject("SIGNAL", number, "false (no signal) or the number of a real-time signal")
      end

      # An empty variable is as none.
      def choice(name, allowed)
        value = @variables[name].to_s
        return if value.empty?

        allowed.find { |symbol| symbol.name == value } || reject(name, value, allowed.join(" or "))
      end

      def switch(name, default)
        case value = @variables[name].to_s
        when "" then default
        when "1" then true
        when "0" then false
        else reject(name, value, "1 or 0")
        end
      end

      def reject(name, value, allowed)
        raise ArgumentError, "#{name}: must be #{allowed}, not #{Options.shown(value)}"
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
