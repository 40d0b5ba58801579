# frozen_string_literal: true

require_relative "../argument"
require_relative "../message"
require_relative "start"

# Exact tracing: every call is counted.
module Rperf
  class << self
    # Traces the calls of the block: how often each method was called, by whom, and how long its calls took.
    #
    # The calls of this process stay slower afterwards, and YJIT compiles no method any more that there is by then: the
    # VM rewrites the code of all methods for it. A line on stderr says so, once.
    #
    # With `only:` it counts the calls of these methods alone, safely in a process that lives on: nothing else gets
    # slower, and afterwards nothing is slower than before.
    #
    # @param warn [Boolean] whether it does
    # @param settings [Hash{Symbol => Object}] `only: nil`, `calls: :ruby`, `clock: :auto`, `output: nil` and
    #   others of {Rperf.start}
    # @return [Profile] with the values `calls`, `wall`, `overhead` and `block_calls`; with `only:`, `calls` and
    #   `call_time`
    # @raise [ArgumentError] without a block, and for an argument that isn't allowed
    # @raise [Rperf::Error] if profiling is on already or can't start
    # @example
    #   Rperf.trace { work }.top(value: "calls")
    #   Rperf.trace(only: ["Order#total", "Cart.*"]) { sleep 60 }
    def trace(warn: true, **settings)
      raise ArgumentError, "Rperf.trace needs a block" unless block_given?

      Argument.one_of(:warn, warn, [true, false])
      raise ArgumentError, "unknown keyword: :mode" if settings.key?(:mode)

      start(**settings, mode: :trace) do
        warn_of_tracing if warn && settings[:only].nil?
        yield
      end
    end

    private

    def warn_of_tracing
      return if @warned_of_tracing

      @warned_of_tracing = true
      Message.say("Rperf.trace: calls in this process stay slower afterwards (warn: false omits this line)")
    end
  end
end
