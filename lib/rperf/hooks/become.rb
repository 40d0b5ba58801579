# frozen_string_literal: true

require_relative "../message"
require_relative "../session/delivery"
require_relative "../session/session"
require_relative "../session/standalone"
require_relative "exec_target"

module Rperf
  # What becomes of the session of a process that becomes another program, or a daemon: all until then is delivered.
  module Become
    class << self
      # By exec, in the block.
      # @param arguments [Array] those of exec
      def program(arguments)
        session = Session.current
        Delivery.until_now(tables: !ExecTarget.missing?(arguments))
        session&.hand_over
        yield
      ensure
        # Whoever gets here is still the program that it was.
        session&.take_back
      end

      # By Process.daemon, in the block, from which only the child comes back.
      def daemon
        session = Session.current
        own_shared = session&.own_shared
        settings = session&.destination&.settings
        Delivery.until_now
        session&.report("daemon")
        result = yield
        is_daemon = true
        # Of a session that the parent has made, this is the last process.
        own_shared&.close
        go_on(settings) if settings
        result
      ensure
        session&.report("daemon-failed") unless is_daemon
      end

      private

      # In a daemon that has no session to join.
      def go_on(settings)
        Standalone.begin(settings)
      rescue StandardError => e
        Message.say("the daemon can't be profiled: #{Message.first_line(e)}")
      end
    end
  end
  private_constant :Become
end
