# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require "rspec/core"
require_relative "suite"
require_relative "suite/factories"
require_relative "suite/make_at_most"

module Rperf
  # Names the examples of RSpec in the profile that is being taken: its samples have the labels `example`, the
  # example's id, and `group`, its file, and each example has an exact account for `rperf report --tests`. Without a
  # profile, examples just run. They have a matcher for a limit of queries, `make_at_most`.
  #
  # @example
  #   # the first line of spec/spec_helper.rb
  #   require "rperf/rspec"
  module RSpecExamples
    # Tells what runs beside the examples of a file: before(:all) and after(:all).
    class Groups
      # The notifications of RSpec's reporter, each a method.
      NOTIFICATIONS = %i[example_group_started example_group_finished].freeze

      def initialize
        @depth = 0
      end

      # A group begins. Those within others are part of these.
      def example_group_started(notification)
        @depth += 1
        return unless @depth == 1 && Suite.recorded?

        Suite.attempt { Suite::Factories.watch }
        file = Suite.attempt { RSpecExamples.file(notification.group.metadata[:file_path]) }
        @state = Suite.begin_group(file) if file
      end

      # A group has ended.
      def example_group_finished(_notification)
        @depth -= 1
        return unless @depth.zero? && @state

        Suite.end_group(@state)
        @state = nil
      end
    end
    OWN_FILES = %r{\A#{Regexp.escape(__dir__)}/}
    private_constant :Groups, :OWN_FILES

    class << self
      # Runs an example of RSpec's.
      def run(example)
        return example.run unless Suite.recorded?

        Suite.attempt { Suite::Factories.watch }
        group, name = Suite.attempt { names(example.id) }
        return example.run unless name

        Suite.test(group, name, -> { example.full_description }) { example.run }
      end

      # @return [Array<String>] the file and the name of the example with this id
      def names(id)
        name = file(id)
        [name[0, name.rindex("[")].freeze, name]
      end

      # A path as RSpec has it, or an id.
      def file(path) = path.delete_prefix("./").freeze

      # Hooks of RSpec's. What runs beside examples is told to its reporter, which isn't there before the suite begins:
      # whoever asks for it earlier decides how it writes.
      def install
        examples = self
        ::RSpec.configure do |config|
          config.include(RSpecMatchers)
          config.around { |example| examples.run(example) }
          # Failures of examples have no lines of ours.
          config.backtrace_exclusion_patterns << OWN_FILES
          config.before(:suite) { Suite.attempt { examples.begin_suite(config.reporter) } }
        end
      end

      # The suite begins: all files are loaded.
      def begin_suite(reporter) = reporter.register_listener(Groups.new, *Groups::NOTIFICATIONS)
    end
  end
  private_constant :RSpecExamples
end

Rperf.const_get(:RSpecExamples).install
