# frozen_string_literal: true

require_relative "autostart/settings"
require_relative "autostart/counters"
require_relative "autostart/delivery"
require_relative "autostart/ends"

module Rperf
  # Profiles a whole program, from the loading of rperf to the program's end.
  # Nothing here may change how the program runs or ends: all that goes wrong
  # becomes one line on stderr.
  module Autostart
    class << self
      # Starts, if the launch's settings allow it and no other Ruby of the same
      # command has been first.
      def begin(launch)
        return launch.report("another") unless launch.first?

        settings = Settings.new(launch.variables)
        start(launch, settings)
      rescue ArgumentError, Error => e
        launch.refuse(e.message)
      end

      # The program ends: the profile is delivered, once.
      def finish
        deliver { Native.stop }
      end

      # The program may become another one: all until now is delivered.
      def before_exec
        deliver { Native.snapshot }
      end

      private

      def start(launch, settings)
        @delivery = Delivery.new(launch, settings, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond))
        options = settings.options
        ForkGuard.install
        Native.start(options.frequency, options.mode, options.signal, options.aggregate)
        @process = Process.pid
        launch.report("started")
        Ends.install
      end

      # A second signal must not end the writing of the profile half-way.
      def deliver
        return unless @process == Process.pid

        Thread.handle_interrupt(Object => :never) do
          profile = yield
          @delivery.deliver(profile) if profile
        end
      rescue Exception => e # rubocop:disable Lint/RescueException -- the program's own end goes on
        Delivery.say("can't deliver the profile: #{e.message} (#{e.class})")
      end
    end
  end
  private_constant :Autostart
end
