# frozen_string_literal: true

require_relative "per_call"

module Overhead
  # What a test of a suite costs, as rperf/rspec and rperf/minitest run it for `rperf report --tests`.
  class Tests
    # As many as large suites have: each is a set of labels.
    TESTS = 10_000
    SESSIONS = %w[none cpu wall].freeze
    GROUP = "spec/models/order_spec.rb"

    def initialize(options)
      require "rperf"
      require "rperf/suite"
      @suite = Rperf.const_get(:Suite)
      @options = options
    end

    # @return [Array<Array<String>>] the rows of a table
    def rows
      with = { "the same test" => method(:same), "a new one each time" => method(:unique) }
      variants = with.transform_values { |it| { alone: PerCall.method(:alone), with: it } }
      PerCall.rows(variants, @options, count: TESTS, sessions: SESSIONS)
    end

    private

    def same(tests)
      number = 0
      number = test("#{GROUP}[1:1]") { number + 1 } while number < tests
    end

    def unique(tests)
      number = 0
      number = test("#{GROUP}[1:#{number}]") { number + 1 } while number < tests
    end

    # As what goes around the examples of RSpec does.
    def test(name, &) = @suite.recorded? ? @suite.test(GROUP, name.freeze, -> { "Order is billed" }, &) : yield
  end
end
