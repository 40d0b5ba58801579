# frozen_string_literal: true

require_relative "../message"
require_relative "../session/delivery"
require_relative "../session/session"
require_relative "../session/standalone"
require_relative "exec_target"

module Rperf
  # The session of a process that becomes another program or a daemon: the profile until then is delivered.
  module Become
    class << self
      # The block calls exec.
      # @param arguments [Array] those of exec
      def program(arguments)
        session = Session.current
        Delivery.until_now(tables: !ExecTarget.missing?(arguments))
        session&.hand_over
        yield
      ensure
        # Only a failed exec comes back.
        session&.take_back
      end

      # The block calls Process.daemon, which returns in the child only.
      def daemon
        session = Session.current
        own_shared = session&.own_shared
        settings = session&.destination&.settings
        Delivery.until_now
        session&.report(:daemon)
        result = yield
        is_daemon = true
        # A session that the parent has made ended with the parent.
        own_shared&.close
        go_on(settings) if settings
        result
      ensure
        session&.report(:daemon_failed) unless is_daemon
      end

      private

      # Begins a session of the daemon's own.
      def go_on(settings)
        Standalone.begin(settings)
      rescue StandardError => e
        Message.say("the daemon can't be profiled: #{Message.first_line(e)}")
      end
    end
  end
  private_constant :Become
end
