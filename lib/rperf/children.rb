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

      # @return [Rperf::Profile] with all that children have left until now, who come too late from now on
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

      # Ends a session of this process, unless it is resumed.
      def suspend
        session = @session
        return unless session&.mine?

        @session = nil
        session.suspend
        @suspended = session
      end

      # @see #suspend
      def resume
        session = @suspended
        return unless session&.mine?

        @suspended = nil
        session.resume
        @session = session
      rescue Error, SystemCallError => e
        Autostart.say("the profiles of children until now are lost (#{e.message})")
      end

      # This process has forked one, which may end before it can say that it has begun.
      def forked(pid) = @session&.report("forked #{pid}")

      # In a forked child, once Ruby runs again.
      def begin_in_child
        session = @session or return
        Rperf.send(:leave_session)
        Autostart.join(session)
      end
    end
  end
  private_constant :Children
end
