# frozen_string_literal: true

require_relative "../builtin"
require_relative "../deferred"
require_relative "../session/session"
require_relative "fiber_methods"
require_relative "heap"
require_relative "own_thread"
require_relative "stacks"

module Rperf
  # What the helper does in Ruby: a thread that the extension makes when the port asks what only the VM knows. During
  # a session that clients have begun, it stays; and always, if the program wants that.
  module Helper
    # How long it sleeps between two looks, in seconds.
    REST = 0.02
    # How long the program waits for its end, in seconds.
    PATIENCE = 0.1
    # The methods as they are now: a program may put its own in their place.
    SLEEP = Kernel.method(:sleep)
    WAKEUP = Thread.instance_method(:wakeup)
    READABLE = IO.instance_method(:wait_readable)
    FIBER_STACKS = Deferred.new(__dir__, "fiber_stacks")
    private_constant :FIBER_STACKS, :REST, :PATIENCE, :SLEEP, :WAKEUP, :READABLE

    class << self
      # @return [Thread] the helper, which is the calling thread
      def prepare
        @thread = OwnThread.prepare(Thread.current, "rperf")
      end

      def facts(thread, with_line) = Stacks.facts(thread, with_line)

      def other_ractors = Stacks.other_ractors

      def fiber_stacks
        FIBER_STACKS.load
        FiberStacks.new
      end

      def memory = Heap.facts

      def heap = [Heap.collector, Stacks.locals, Heap.globals]

      def collecting? = Heap.collecting?

      # @param error [Exception, Class] it, or its class: the program's may have methods of its own
      # @return [String] what its class is called
      def class_of(error)
        type = Builtin::CLASS.bind_call(error)
        Builtin::NAME.bind_call(Class.equal?(type) ? error : type) || "a class without a name"
      end

      # Makes one that waits for questions all the time.
      # @raise [Rperf::Error] if it can't be made
      def stay
        @bell = IO.for_fd(Native.hang_bell, "rb", autoclose: false)
        Native.make_helper
      rescue Error
        @bell = nil
        raise
      end

      # In a forked child, which has no helper.
      def stay_in_child
        stay if @bell
      rescue Error
        nil # It answers as those do that have none.
      end

      # @param of_clients [Boolean] whether a session runs that clients have begun
      # @return [Boolean] whether the helper is to look for questions again
      def rest(of_clients)
        OwnThread.unmasked do
          next hear(@bell) || of_clients if @bell

          SLEEP.call(REST) if of_clients
          of_clients
        end
      end

      # @return [Boolean] whether the session runs that clients want
      def begin_session
        # To hook into libraries may take a while, which isn't to be the session's time.
        Ops.prepare if Native.clients_want_ops?
        has_begun = Native.begin_for_clients
        Ops.begin if Native.ops?
        has_begun
      end

      # @return [NativeProfile, nil] of the session that runs, up to now
      # @raise [Rperf::Error] if it gives none
      def snapshot
        session = Session.running
        session ? session.snapshot(false) : Native.snapshot(false)
      end

      # The program begins a session of its own, or ends: one that clients have begun ends, and so does the helper.
      # @param ends [Boolean] whether the program ends
      def give_way(ends: false)
        return unless Native.of_clients?

        Native.give_way(ends)
        return if @bell

        helper = @thread
        WAKEUP.bind_call(helper)
        OwnThread.await(helper, PATIENCE)
      rescue ThreadError
        nil # It has ended.
      end

      private

      # @return [Boolean] false if the program has closed the descriptor
      def hear(bell)
        READABLE.bind_call(bell)
        return true if Native.hear_bell

        @bell = nil
        false
      rescue IOError, SystemCallError
        @bell = nil
        false
      end
    end
  end
  private_constant :Helper
end
