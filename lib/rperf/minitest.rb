# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require "minitest"
require_relative "suite"
require_relative "suite/factories"
require_relative "suite/op_limit"
require_relative "wrapped"

module Rperf
  # Names the tests of Minitest in the profile that is being taken: its samples have the labels `example`, as
  # "CartTest#test_total", and `group`, the file, and each test has an exact account for `rperf report --tests`.
  # Without a profile, tests just run. Option `--rperf` of Minitest loads it.
  #
  # @example
  #   # test/test_helper.rb
  #   require "rperf/minitest"
  module MinitestTests
    DIRECTORY = "#{Dir.pwd}/".freeze
    private_constant :DIRECTORY

    # A test runs.
    def run
      return __rperf_run unless Suite.recorded?

      Suite.attempt { Suite::Factories.watch }
      group, text = Suite.attempt { MinitestTests.names(self.class, name) }
      text ? Suite.test(group, text) { __rperf_run } : __rperf_run
    end

    class << self
      # @return [Array<String>] the test's file and its name
      def names(type, name) = [file(type, name), "#{type.name}##{name}".freeze]

      private

      # The file that has the test, or else its class.
      def file(type, name)
        # A test class may have an `instance_method` of its own.
        file, = Builtin::INSTANCE_METHOD.bind_call(type, name).source_location
        file ? file.delete_prefix(DIRECTORY).freeze : -type.name.to_s
      rescue NameError
        -type.name.to_s
      end
    end
  end
  private_constant :MinitestTests

  # Assertions of Minitest, part of each test class.
  module MinitestAssertions
    # Fails if the block makes more calls of ops: of statements of SQL, or of another kind.
    #
    # @param most [Integer] calls that are allowed
    # @param kind [Symbol, String, nil] such as `:sql`, `:http`, `:redis`; nil: all
    # @example
    #   assert_at_most(10) { get "/orders" }
    def assert_at_most(most, kind = :sql, &)
      limit = OpLimit.new(most, kind)
      assert(limit.kept?(&) != false, -> { limit.message })
    end
  end
  private_constant :MinitestAssertions
end

Rperf.const_get(:Wrapped).install(Minitest::Test, Rperf.const_get(:MinitestTests))
Minitest::Test.include(Rperf.const_get(:MinitestAssertions))
