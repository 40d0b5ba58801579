# frozen_string_literal: true

require_relative "autostart/settings"
require_relative "autostart/counters"
require_relative "autostart/delivery"
require_relative "autostart/membership"
require_relative "autostart/ends"
require_relative "autostart/exec_target"
require_relative "shared_session"

module Rperf
  # Profiles a whole program, from the loading of rperf, or from the fork that made
  # its process, to the program's end. Nothing here may change how the program runs
  # or ends: all that goes wrong becomes one line on stderr.
  module Autostart
    # So often is tried what fails with anything else than a signal's exception.
    ATTEMPTS = 3
    private_constant :ATTEMPTS

    class << self
      # @return [String, nil] what had this program profiled as a whole; nil if nothing had
      attr_reader :initiator

      # @return [Options, nil] with which it is profiled
      attr_reader :options

      # One line for the user. Goes past $stderr, which is the program's.
      def say(message)
        # Other Ractors may not touch STDERR.
        STDERR.write("rperf: #{message}\n") if Ractor.main?
      rescue StandardError
        nil # The program has closed its stderr, or put its own methods on it.
      end

      # Forked children that join a session are going to deliver at their end.
      def watch_ends = Ends.install

      # Starts, if the launch's settings allow it and, where only one Ruby is to be
      # profiled, no other one has been first.
      def begin(launch)
        return if launch.over?
        return launch.report_another unless launch.first?

        settings = Settings.new(launch)
        launch.folder ? start_as_member(launch, settings) : start_alone(settings)
      rescue StandardError => e
        Children.close
        launch.refuse(e.message.lines.first.to_s.chomp)
      end

      # In a forked child: it takes part in its parent's session.
      def join(session)
        start(session.options, session.initiator) { |begun_ns| Membership.new(session, begun_ns, Counters.now) }
      rescue StandardError => e
        Children.session = nil
        session.report(:declined, Process.pid)
        say("process #{Process.pid} can't be profiled: #{e.message.lines.first.to_s.chomp}")
      end

      # The program ends: the profile is delivered, once.
      def finish
        deliver do |profiles|
          report(:ending) if Native.running?
          Native.stop_into(profiles)
        end
      ensure
        leave_session if here?
      end

      # The program is to become another one, in the block: all until now is delivered.
      # @param arguments [Array] those of exec
      def around_exec(arguments)
        deliver_until_now(tables: !ExecTarget.missing?(arguments))
        Children.hide if Ractor.main?
        @delivery.hand_over if here?
        report(:exec)
        yield
      ensure
        # Whoever gets here is still the program that it was.
        report(:exec_failed)
        @delivery.take_back if here?
        Children.show if Ractor.main?
      end

      # The program is to go on in a child, which the block makes: only the child comes back from it.
      def around_daemon(&)
        settings = @delivery.settings if here?
        deliver_until_now
        report(:daemon)
        result = Ractor.main? ? Children.around_daemon(&) : yield
        is_daemon = true
        go_on_alone(settings) if settings
        result
      ensure
        report(:daemon_failed) unless is_daemon
      end

      # This program is an rperf command, which is no part of what the user wants to see.
      def withdraw
        return unless here?

        Native.stop
        report(:withdrawn)
        @process = nil
        leave_session
      end

      private

      def start_as_member(launch, settings)
        session = SharedSession.new(launch.folder, settings.options, settings.initiator)
        start(settings.options, settings.initiator) { |begun_ns| Membership.new(session, begun_ns) }
        Children.session = session if launch.inherited?
      end

      def start_alone(settings)
        options = settings.options
        session = options.inherit && Children.share(options, settings.initiator)
        start(options, settings.initiator) { Delivery.new(settings, session || nil) }
      end

      # The block makes what delivers the profile.
      def start(options, initiator)
        begun_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        ForkGuard.install
        Native.start(options.sampling)
        @initiator = initiator
        @options = options
        @process = Process.pid
        @delivery = yield begun_ns
        Ends.install
      end

      # Not in a forked child that doesn't take part, and not in another Ractor, which
      # may neither call Native nor touch what is in this module.
      def here? = Ractor.main? && @process == Process.pid

      def report(event)
        @delivery.report(event) if here?
      end

      def leave_session
        Children.close
        Children.session = nil
      end

      # @param tables [Boolean] whether the page is printed too: not if it's sure to be printed later
      def deliver_until_now(tables: true)
        deliver(tables:) { |profiles| profiles.concat([Native.snapshot(false)].compact) }
      end

      # In a daemon that has no session to join.
      def go_on_alone(settings)
        start_alone(settings)
      rescue StandardError => e
        Children.close
        say("the daemon can't be profiled: #{e.message.lines.first.to_s.chomp}")
      end

      # The block puts the profile into the Array that it gets. On the main thread nothing holds off the handlers of
      # signals, and what they raise can come at any point: what is done stays so, the rest is done, and then it is
      # raised. So nothing but the loop may be outside of `begin`.
      def deliver(tables: true, &)
        profiles = []
        attempts = 0
        delivered = interruption = nil
        begin
          Thread.handle_interrupt(Object => :never) { delivered ||= deliver_rest(profiles, tables, &) }
        rescue Error => e
          complain(e)
        rescue SystemExit, SignalException => e
          interruption ||= e
          retry
        rescue Exception => e # rubocop:disable Lint/RescueException -- the program's own end goes on
          interruption ||= e
          retry if delivered || (attempts += 1) < ATTEMPTS
          return complain(e)
        end
        raise interruption if interruption
      end

      # Can be called again after an interruption.
      def deliver_rest(profiles, tables)
        if here?
          yield profiles if profiles.empty?
          @delivery.deliver(profiles.first, tables:) unless profiles.empty?
        end
        true
      end

      def complain(error) = say("can't deliver the profile: #{error.message} (#{error.class})")
    end
  end
  private_constant :Autostart
end
