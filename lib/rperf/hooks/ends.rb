# frozen_string_literal: true

require_relative "../session/delivery"
require_relative "become"

module Rperf
  # Hooks into the ways in which a program ends. A signal ends a Ruby process by an
  # exception, and so runs at_exit blocks.
  module Ends
    # Wraps exit!, which runs no at_exit block.
    module BeforeExit
      def exit!(*)
        Delivery.finish
        super
      end
    end

    # Wraps exec, after which no Ruby is left to write the profile; if exec fails,
    # profiling goes on.
    module BeforeExec
      def exec(*arguments)
        Become.program(arguments) { super }
      end
    end

    # Wraps daemon, which goes on in a child and ends this process.
    module BeforeDaemon
      def daemon(*)
        Become.daemon { super }
      end
    end

    # Private, as Kernel's own methods are.
    module KernelEnds
      include BeforeExit
      include BeforeExec

      private :exit!, :exec
    end
    private_constant :BeforeExit, :BeforeExec, :BeforeDaemon, :KernelEnds

    # at_exit blocks run in reverse order: in a program that is profiled as a whole, this one is registered first and
    # runs last. Takes effect once, however often it is called, and in forked children too.
    def self.install
      return if @installed

      @installed = true
      at_exit { Delivery.finish }
      [Process.singleton_class, Kernel.singleton_class].each { |owner| owner.prepend(BeforeExit, BeforeExec) }
      Process.singleton_class.prepend(BeforeDaemon)
      Kernel.prepend(KernelEnds)
    end
  end
  private_constant :Ends
end
