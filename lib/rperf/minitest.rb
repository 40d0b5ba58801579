# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require "minitest"
require_relative "suite"
require_relative "suite/factories"

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
      return super unless Suite.recorded?

      Suite::Factories.watch
      type = self.class
      Suite.test(MinitestTests.file(type, name), "#{type.name}##{name}".freeze) { super }
    end

    # @return [String] the file that has the test, or else its class
    def self.file(type, name)
      file, = type.instance_method(name).source_location
      (file ? file.delete_prefix(DIRECTORY) : type.name.to_s).freeze
    rescue NameError
      type.name.to_s.freeze
    end
  end
  private_constant :MinitestTests
end

Minitest::Test.prepend(Rperf.const_get(:MinitestTests))
