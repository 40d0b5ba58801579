# frozen_string_literal: true

# Ops: work that has a name while it lasts, such as a query or a request to another server.
module Rperf
  class << self
    # Gives the work of the block a name, if the session measures ops (`measure: :ops`): samples have it as
    # the leaf of their stacks, and {Profile#ops} has the exact sums of all calls. An op belongs to its
    # fiber. One inside another is the leaf meanwhile.
    #
    # Does nothing but run the block in all other sessions, without one, and outside of the main Ractor.
    #
    # @param name [String] must tell few ops apart, up to 4,000: no ids or values. Of statements of SQL
    #   (`kind: :sql`) the values are left out.
    # @param kind [Symbol, String] such as `:sql`, `:http`, `:redis`; stands in front of the name
    # @return the block's value
    # @example
    #   Rperf.op("exchange rates", kind: :grpc) { client.rates(date) }
    def op(name, kind: :op)
      return yield unless Native.main_ractor? && Native.ops?

      undo = []
      begin
        Native.begin_op(undo, kind, name)
        yield
      ensure
        # One call of C: no interrupt can come before it has done its work.
        Native.end_op(undo)
      end
    end

    # Counts the calls of ops that end while the block runs, on all threads. If no session runs, it has one of its own
    # meanwhile. For tests: in RSpec `expect { }.to make_at_most(10).queries` and in Minitest `assert_at_most(10) { }`
    # call it.
    #
    # @param kind [Symbol, String, nil] such as `:sql`, `:http`, `:redis`; nil: all
    # @return [Hash{String => Integer}] calls by the op's name, as in {Profile#ops}, most first
    # @raise [ArgumentError] without a block
    # @raise [Rperf::Error] if the session that runs doesn't measure ops, or none can begin
    # @example
    #   Rperf.op_calls(kind: :sql) { Order.recent.each(&:customer) }
    #   # => {"[SQL] SELECT * FROM customers WHERE id = ?" => 40, "[SQL] SELECT * FROM orders LIMIT ?" => 1}
    def op_calls(kind: nil, &block)
      raise ArgumentError, "Rperf.op_calls needs a block" unless block

      kind = kind&.to_s
      return op_calls_meanwhile(kind, &block) if Native.ops?
      raise Error, "the session that runs doesn't measure ops (measure: :ops, --measure ops)" if running?

      start(mode: :wall, frequency: 1, measure: :ops)
      begin
        op_calls_meanwhile(kind, &block)
      ensure
        stop
      end
    end

    private

    def op_calls_meanwhile(kind)
      before = Native.op_calls(kind).each_slice(2).to_h
      yield
      calls = Native.op_calls(kind) or raise Error, "the session has ended before its ops could be counted"
      calls = calls.each_slice(2).to_h { |name, count| [name, count - before.fetch(name, 0)] }
      calls.select { |_, count| count.positive? }.sort_by { |name, count| [-count, name] }.to_h
    end
  end
end
