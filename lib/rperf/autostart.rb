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
      # @return [String, nil] what had this program profiled as a whole; nil if nothing had
      attr_reader :initiator

      # @return [Options, nil] with which it is profiled
      attr_reader :options

      # Starts, if the launch's settings allow it and no other Ruby of the same
      # command has been first.
      def begin(launch)
        return launch.report("another") unless launch.first?

        start(launch, Settings.new(launch.variables))
      rescue StandardError => e
        launch.refuse(e.message.lines.first.to_s.chomp)
      end

      # The program ends: the profile is delivered, once.
      def finish
        deliver { Native.stop }
      end

      # The program is to become another one, in the block: all until now is delivered.
      def around_exec
        deliver { Native.snapshot(false) }
        report("exec")
        yield
      ensure
        # Whoever gets here is still the program that it was.
        report("exec failed")
      end

      private

      def start(launch, settings)
        @delivery = Delivery.new(launch, settings, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond))
        options = settings.options
        ForkGuard.install
        CompiledCode.watch
        Native.start(**options.sampling)
        @initiator = settings.initiator
        @options = options
        @launch = launch
        @process = Process.pid
        launch.report("started")
        Ends.install
      end

      # Not in a forked child, and not in another Ractor, which may neither call
      # Native nor touch what is in this module.
      def here? = Ractor.main? && @process == Process.pid

      def report(line)
        @launch.report(line) if here?
      end

      # A second signal must not end the writing of the profile half-way.
      def deliver
        return unless here?

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
