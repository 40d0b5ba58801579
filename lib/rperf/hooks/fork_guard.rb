# frozen_string_literal: true

require_relative "children"

module Rperf
  # Ends the session in forked children, which have neither the worker nor the timer; those that are to be
  # profiled begin anew.
  module ForkGuard
    # Process._fork is what every fork of Ruby code goes through, but for daemon.
    module Hook
      # Kernel#fork and its like call this.
      def _fork
        # Only the main Ractor is profiled, and only it may call Native.
        return super unless Ractor.main?

        labels = Children.labels
        begin
          Native.forking(true)
          pid = super
          Native.forget_in_child if pid.zero?
        ensure
          Native.forking(false)
        end
        pid.zero? ? Children.begin_in_child(labels) : Children.forked(pid)
        pid
      end

      # Returns in a child only; the parent has ended.
      def daemon(*)
        return super unless Ractor.main?

        labels = Children.labels
        begin
          Native.forking(true)
          result = super
          Native.forget_in_child
        ensure
          Native.forking(false)
        end
        Children.begin_in_child(labels)
        result
      end
    end
    private_constant :Hook

    # Takes effect once, however often it is called.
    def self.install
      Process.singleton_class.prepend(Hook)
    end
  end
  private_constant :ForkGuard
end
