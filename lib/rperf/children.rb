# frozen_string_literal: true

module Rperf
  # What the children of this process join when they are profiled too.
  module Children
    class << self
      # Forked children join this session. nil: they aren't profiled.
      # @param session [SharedSession, nil]
      attr_writer :session

      # Lets children join a new session, which this process merges.
      # @return [SharedSession]
      # @raise [Rperf::Error] if there is no place for its folder
      def share(options, initiator)
        require_relative "autostart"
        Autostart.watch_ends
        @session = SharedSession.create(options, initiator)
      end

      # @return [NativeProfile] with all that children have left until now, who come too late from now on
      def merge(profile)
        session = @session
        return profile unless session&.mine?

        session.merge(profile).profile
      ensure
        close
      end

      # Ends a session of this process.
      def close
        session = @session
        return unless session&.mine?

        @session = nil
        session.close
      end

      # What this process may become by exec sees nothing of a session of its own.
      def hide
        @session.hide if @session&.mine?
      end

      # @see #hide
      def show
        @session.show if @session&.mine?
      end

      # A daemon, which the block makes of a child, takes no part in a session of its parent's, and removes it.
      def around_daemon
        session = @session if @session&.mine?
        @session = nil if session
        result = yield
        is_daemon = true
        session&.close
        result
      ensure
        @session = session if session && !is_daemon
      end

      # This process has forked one, which may end before it can say that it has begun.
      def forked(pid) = @session&.report(:forked, pid)

      # @return [Hash] with which a child begins that is forked now
      def labels = @session ? Rperf.labels : {}

      # In a forked child, once Ruby runs again.
      # @param labels [Hash] its parent's
      def begin_in_child(labels)
        session = @session or return
        Rperf.send(:leave_session)
        Autostart.join(session)
        Rperf.label(**labels) unless labels.empty?
      rescue StandardError
        nil # A value without a to_s: the child goes without labels.
      end
    end
  end
  private_constant :Children
end
