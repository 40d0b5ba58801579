# frozen_string_literal: true

require_relative "../rperf"
require_relative "builtin"

module Rperf
  # The tests of a suite, for the profile of the running session: each has labels and an account. Without a session
  # that takes samples, they just run.
  module Suite
    # An exception from another thread (Thread#raise, Timeout with a class of its own) must not be taken for one of
    # ours: it waits until we are done.
    LATER = { StandardError => :never }.freeze
    # The thread's variable with what its last test has opened; empty once that has ended.
    TEST = :__rperf_test__
    # Not where the program can't be profiled, but must run.
    HAS_NATIVE = Rperf.const_defined?(:Native)
    private_constant :LATER, :TEST, :HAS_NATIVE

    class << self
      # @return [Boolean] whether a test has an account here and now
      def recorded? = HAS_NATIVE && Native.main_ractor? && Native.running?

      # Runs the block as a test. Within another one of this thread, it's a part of that.
      #
      # @param group [String] the file; frozen
      # @param name [String] frozen
      # @param title [#call, nil] asked at the end for what people call it
      # @return the block's value
      def test(group, name, title = nil, &)
        outer = Builtin::CURRENT_THREAD.call.thread_variable_get(TEST)
        return yield if outer && !outer.empty?

        outermost(group, name, title, &)
      end

      # What runs beside the examples of a file, from here on.
      #
      # @return [Array] what {end_group} takes
      def begin_group(group)
        state = [[], []]
        attempt { Native.begin_test(*state, group.freeze, nil) } if recorded?
        state
      end

      # @param state [Array] what {begin_group} has returned
      def end_group(state)
        attempt { Native.end_test(*state, nil) } if HAS_NATIVE
      end

      # @return what the block makes; nil if it fails, of which the first time one line tells
      def attempt
        Builtin::HANDLE_INTERRUPT.call(LATER) do
          yield
        rescue StandardError => e
          complain(e)
        end
      end

      private

      def outermost(group, name, title)
        opened = []
        undo = []
        Builtin::CURRENT_THREAD.call.thread_variable_set(TEST, opened)
        # What is raised here is an interrupt: nothing of it can fail.
        Native.begin_test(opened, undo, group, name)
        yield
      ensure
        begin
          text = attempt(&title) if title
        ensure
          # One call of C: no interrupt can come before it has done its work.
          Native.end_test(opened, undo, text)
        end
      end

      def complain(error)
        return if @complained

        @complained = true
        # Not with methods of $stderr's: tests put others in their place.
        Message.say("a test couldn't be named in the profile: #{Message.first_line(error)} (#{error.class})")
        nil
      rescue StandardError
        nil # An exception without a message: the suite goes on.
      end
    end
  end
  private_constant :Suite
end
