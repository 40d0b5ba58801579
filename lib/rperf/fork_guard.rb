# frozen_string_literal: true

module Rperf
  # Ends profiling in forked children, which have neither the worker nor the timer.
  module ForkGuard
    # Process._fork is what every fork of Ruby code goes through.
    module Hook
      # Kernel#fork and its like call this.
      def _fork
        Native.forking(true)
        pid = super
        Native.forget_in_child if pid.zero?
        pid
      ensure
        Native.forking(false)
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
