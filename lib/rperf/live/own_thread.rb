# frozen_string_literal: true

require_relative "../builtin"

module Rperf
  # What our threads in a program have in common.
  module OwnThread
    # The method as it is now: a program may put its own in its place.
    JOIN = Thread.instance_method(:join)
    UNMASKED = { Object => :immediate }.freeze
    private_constant :JOIN, :UNMASKED

    class << self
      # Whatever ends it, nobody is told; and it is no thread that a server should warn of, or a program wait for.
      # @return [Thread] the thread
      def prepare(thread, name)
        thread.report_on_exception = false
        thread.abort_on_exception = false
        thread.name = name
        thread.thread_variable_set(:fork_safe, true)
        thread.define_singleton_method(:join) { |*| self }
        thread.define_singleton_method(:value) { nil }
        thread
      end

      # A thread has the mask of the one that made it. Here it can be ended all the same: the program's end waits for
      # that.
      def unmasked(&) = Builtin::HANDLE_INTERRUPT.call(UNMASKED, &)

      # Waits for its end, for so many seconds.
      def await(thread, seconds) = JOIN.bind_call(thread, seconds)
    end
  end
  private_constant :OwnThread
end
