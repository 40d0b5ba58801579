# frozen_string_literal: true

require_relative "web/post"

module Rperf
  # The command-line program; all of it is in the crate rperf-cli.
  module CLI
    obstacle = Rperf.instance_variable_get(:@obstacle)
    raise LoadError, "rperf: #{obstacle}" if obstacle

    # @param arguments [Array<String>] as in ARGV
    # @return [Integer] the exit status
    def self.run(arguments)
      Session.of_whole_program&.withdraw
      Port.close
      Native.cli(arguments, File.expand_path("..", __dir__), Launch.abi, Web::Post)
    end
  end
end
