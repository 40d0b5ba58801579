# frozen_string_literal: true

require_relative "../processes/launch"
require_relative "options"

module Rperf
  # The RPERF_* variables, or a session's settings, as options; ArgumentError for values that aren't allowed.
  class Settings
    attr_reader :options

    def initialize(launch)
      @variables = launch.variables
      # Who has made a session writes the file, and sees to the children.
      read = launch.directory ? :of_member : :from_variables
      @options = Options.new(NativeSettings.public_send(read, @variables))
    end

    # Whatever the locale's encoding is.
    def stat_command = (@options[:stat_command] || $PROGRAM_NAME).dup.force_encoding(Encoding::UTF_8).scrub

    def stat? = @options[:stat]
    def stat_report? = @options[:stat_report]

    # The environment with which the same begins again, wherever the program is by then.
    def variables
      output = @options.output
      all = output ? @variables.merge("OUTPUT" => output) : @variables
      all.transform_keys { |name| "#{Launch::PREFIX}#{name}" }
    end

    # What has the program profiled, for messages.
    def initiator = @variables.fetch(Launch::INITIATOR) { "#{Launch::ENABLED}=1" }
  end
  private_constant :Settings
end
