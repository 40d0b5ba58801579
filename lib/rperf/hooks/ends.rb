# frozen_string_literal: true

require_relative "../message"
require_relative "../session/session"
require_relative "../session/standalone"
require_relative "../wrapped"

module Rperf
  # Hooks into the ways in which a program ends, and those in which a process goes on as another one: the profile until
  # then is delivered. A signal ends a Ruby process by an exception, and so runs at_exit blocks.
  #
  # The program may have redefined any method by then: the hooks call those of Native, and those of Builtin.
  module Ends
    # Wraps exit!, which runs no at_exit block, and exec, after which no Ruby is left to write the profile. A method of
    # Process may call that of Kernel with super, so they keep what they wrap under different names.
    module OfProcess
      ruby2_keywords def exit!(*arguments, &)
        Ends.exit(arguments) { __rperf_process_exit!(*arguments, &) }
      end

      ruby2_keywords def exec(*arguments, &)
        Ends.exec(arguments) { __rperf_process_exec(*arguments, &) }
      end
    end

    # Likewise, of Kernel.exit! and Kernel.exec.
    module OfKernel
      ruby2_keywords def exit!(*arguments, &)
        Ends.exit(arguments) { __rperf_kernel_exit!(*arguments, &) }
      end

      ruby2_keywords def exec(*arguments, &)
        Ends.exec(arguments) { __rperf_kernel_exec(*arguments, &) }
      end
    end

    # Likewise, of all objects.
    module OfObjects
      private

      ruby2_keywords def exit!(*arguments, &)
        Ends.exit(arguments) { __rperf_exit!(*arguments, &) }
      end

      ruby2_keywords def exec(*arguments, &)
        Ends.exec(arguments) { __rperf_exec(*arguments, &) }
      end
    end

    # Wraps daemon, which goes on in a child and ends this process.
    module BeforeDaemon
      def daemon(*)
        return __rperf_daemon(*) unless Native.main_ractor?

        settings = Session.current&.destination&.settings
        begin
          Native.begin_daemon
          result = Wrapped.unseen { __rperf_daemon(*) }
          is_daemon = true
        ensure
          Native.end_daemon(is_daemon || false)
        end
        Ends.go_on(settings) if settings
        result
      end
    end

    private_constant :OfProcess, :OfKernel, :OfObjects, :BeforeDaemon

    # at_exit blocks run in reverse order: in a program that is profiled as a whole, this one is registered first and
    # runs last. Takes effect once, however often it is called, and in forked children too.
    def self.install
      return if @installed

      @installed = true
      # Nothing comes before the call: a handler of a signal may raise where a method of Ruby returns.
      at_exit { Native.finish(nil) }
      Wrapped.install(Process.singleton_class, OfProcess, "__rperf_process")
      Wrapped.install(Kernel.singleton_class, OfKernel, "__rperf_kernel")
      Wrapped.install(Kernel, OfObjects)
      Wrapped.install(Process.singleton_class, BeforeDaemon)
    end

    # The profile is delivered before the block, which ends the process.
    def self.exit(arguments, &)
      return yield unless Native.main_ractor?

      Native.finish(arguments)
      Wrapped.unseen(&)
    end

    # Likewise, before the block makes the process another program. If that fails, profiling goes on.
    def self.exec(arguments, &)
      return yield unless Native.main_ractor?

      begin
        Native.hand_over(arguments)
        Wrapped.unseen(&)
      ensure
        # Only a failed exec comes back.
        Native.take_back
      end
    end

    # Begins a session of the daemon's own.
    def self.go_on(settings)
      Standalone.begin(settings)
    rescue StandardError => e
      Message.say("the daemon can't be profiled: #{Message.first_line(e)}")
    end
  end
  private_constant :Ends
end
