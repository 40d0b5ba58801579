# frozen_string_literal: true

require_relative "../session/delivery"
require_relative "become"

module Rperf
  # The ways in which a program ends while Ruby still runs. Signals end a Ruby
  # by an exception, and so by at_exit.
  module Ends
    # In front of exit!, which runs no at_exit block.
    module BeforeExit
      def exit!(*)
        Delivery.finish
        super
      end
    end

    # In front of exec, after which there is no more Ruby to write the profile;
    # if it fails, profiling goes on.
    module BeforeExec
      def exec(*arguments)
        Become.program(arguments) { super }
      end
    end

    # In front of daemon, which goes on in a child and ends this process.
    module BeforeDaemon
      def daemon(*)
        Become.daemon { super }
      end
    end

    # Kernel's are private, as Kernel's own are.
    module KernelEnds
      include BeforeExit
      include BeforeExec

      private :exit!, :exec
    end
    private_constant :BeforeExit, :BeforeExec, :BeforeDaemon, :KernelEnds

    # at_exit blocks run last to first; where the program is profiled as a whole, this one is the first of all.
    # Takes effect once, however often it is called, and in forked children too.
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
