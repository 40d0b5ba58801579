# frozen_string_literal: true

require_relative "../live/port"
require_relative "../message"
require_relative "../ops"
require_relative "../session/member"
require_relative "../session/session"
require_relative "../session/targets"
require_relative "../wrapped"

module Rperf
  # Ends the session in forked children, which have neither its worker nor its timer. Children that are to be profiled
  # begin sessions of their own.
  module ForkGuard
    # Every fork by Ruby code calls Process._fork, except daemon.
    module Hook
      def _fork
        # Only the main Ractor may call Native.
        return __rperf_forking__fork unless Native.main_ractor?

        parent = Native.process
        shared = Session.current&.shared
        labels = shared && Native.labels
        begin
          Native.forking(true)
          pid = Wrapped.unseen { __rperf_forking__fork }
        ensure
          Native.forking(false)
        end
        if Native.here?(parent)
          # The child may end before it can report its start.
          shared&.report_fork(pid)
        else
          ForkGuard.forget
          Port.begin_in_child
          ForkGuard.join(shared, labels)
        end
        pid
      end

      # Returns in a child only; the parent has ended.
      def daemon(*)
        return __rperf_forking_daemon(*) unless Native.main_ractor?

        session = Session.current
        # A session that the parent has made ends with the parent: the daemon can't join it.
        shared = session&.joined
        labels = shared && Native.labels
        begin
          Native.forking(true)
          result = Wrapped.unseen { __rperf_forking_daemon(*) }
        ensure
          Native.forking(false)
        end
        ForkGuard.forget
        Port.begin_in_child(ended: true)
        ForkGuard.join(shared, labels)
        result
      end
    end
    private_constant :Hook

    class << self
      # Takes effect once, however often it is called: with each account.
      def install
        return if @installed

        # Another wrapper of daemon may be there.
        Wrapped.install(Process.singleton_class, Hook, "__rperf_forking")
        @installed = true
      end

      # Lets go of what a child has inherited.
      def forget
        Native.forget_in_child
        Ops.release
        Targets.release
      end

      # Called in a forked child, once Ruby runs again.
      # @param shared [SharedSession, nil] what its parent's children join
      # @param labels [Hash, nil] its parent's
      def join(shared, labels)
        return unless shared

        begin_member(shared)
        Native.enter([], labels, false) if labels
      rescue StandardError
        nil # A value without a to_s: the child goes without labels.
      end

      private

      def begin_member(shared)
        Member.begin(shared, forked: true)
      rescue StandardError => e
        shared.report_refusal
        Message.say("process #{Native.process} can't be profiled: #{Message.first_line(e)}")
      end
    end
  end
  private_constant :ForkGuard
end
