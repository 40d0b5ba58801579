# frozen_string_literal: true

require_relative "../builtin"
require_relative "../stderr"

module Rperf
  module Ops
    # What is done for ops within the program's own code must not fail.
    module Guard
      # An exception from another thread must not be taken for one of ours: it waits until we are done.
      LATER = { StandardError => :never }.freeze
      # No half of it.
      LAST = { Object => :never }.freeze

      # @param failure [String] what is told if it fails
      # @return what the block makes; nil if it fails
      def self.attempt(failure, interrupts = LATER)
        Builtin::HANDLE_INTERRUPT.call(interrupts) do
          yield
        rescue StandardError => e
          complain(failure, e)
        end
      end

      # Once: the same fault in every call would fill the log.
      def self.complain(failure, error)
        return if @complained

        @complained = true
        Stderr.write("rperf: ops #{failure}: #{error.message} (#{error.class})\n")
        nil
      rescue StandardError
        nil # Nothing to write to, or an exception without a message.
      end
      private_class_method :complain
    end
  end
end
