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
  end
end
