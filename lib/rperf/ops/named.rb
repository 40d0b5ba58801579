# frozen_string_literal: true

module Rperf
  module Ops
    # Calls that are ops as a whole.
    module Named
      # @param kind [String] of op
      # @param name [String] its name
      # @return what the block makes
      def self.call(kind, name)
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
end
