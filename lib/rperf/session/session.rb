# frozen_string_literal: true

require_relative "../errors"
require_relative "../ops"
require_relative "targets"

module Rperf
  # The profiling of this process. It begins with Rperf.start, with the loading of rperf, or with the fork that made
  # the process. At its end the profile goes to its destination: a {Caller}, a {Standalone} or a {Member}.
  class Session
    class << self
      # @return [Session, nil] this process's session; nil in a forked child that has begun none. Other Ractors have
      #   none, as they may neither call Native nor read @current.
      def current
        return unless Native.main_ractor?

        session = @current
        session if session&.here?
      end

      # @return [Session, nil] the current one, until it has ended
      def running = (current if Native.main_ractor? && Native.running?)

      # @return [Session, nil] the one of this process whose profile nobody has got yet, though it has ended: a handler
      #   of a signal has raised something
      def interrupted
        return unless Native.main_ractor?

        session = @interrupted
        session if session&.here?
      end

      attr_writer :current, :interrupted

      # `session` has ended. Another one may have begun meanwhile.
      def leave(session)
        @current = nil if session.equal?(@current)
      end
    end

    attr_reader :options, :initiator, :destination

    # @return [NativeProfile, nil] what {#stop} has made, and its destination has got
    attr_reader :profile

    # @param options [Options]
    # @param destination [Caller, Standalone, Member]
    # @param initiator [String, nil] what has the program profiled as a whole, for messages; nil: its own Rperf.start
    # @param shared [SharedSession, nil] what forked children join; nil: they aren't profiled
    def initialize(options, destination, initiator: nil, shared: nil)
      @options = options
      @destination = destination
      @initiator = initiator
      @shared = shared
    end

    # Starts profiling.
    # @raise [Rperf::Error] if it is on already or can't start
    def begin
      @process = Native.process
      targets = Targets.of(options[:only])
      # To hook into libraries may take a while, which isn't to be the session's time.
      Ops.prepare if options.ops?
      destination.start(options.sampling)
      Session.current = self
      Targets.begin(targets) if targets
      Ops.begin if Native.ops?
    end

    # Whether this is the process that is profiled.
    def here? = Native.here?(@process)

    # @return [SharedSession, nil] what forked children join: nothing once the program's profile is delivered
    def shared
      return @shared unless @initiator

      @shared if Native.whole?
    end

    # @return [SharedSession, nil] what this process has joined itself
    def joined = shared&.joined

    # @return [NativeProfile, nil] up to now; nil after the end
    # @raise [Rperf::Error] if this session gives none
    def snapshot(clear)
      obstacle = snapshot_obstacle(clear:)
      raise Error, obstacle if obstacle

      whole do
        Targets.update
        Native.snapshot(clear)
      end
    end

    # @return [String, nil] why there is no snapshot
    def snapshot_obstacle(clear:)
      return "#{initiator} profiles this program as a whole: clear: can't be true" if clear && initiator

      "there are no snapshots of a session with aggregate: false" unless options.aggregate?
    end

    # Ends profiling.
    # @return [NativeProfile, nil] the profile, when it has been delivered
    def stop
      taken = []
      begin
        whole do
          Ops.release
          Targets.release
          Native.stop_into(taken)
        end
        has_ended = true
      ensure
        # A handler of a signal may raise something as the profile is made: it has been kept until here.
        finish(taken.first) if has_ended || taken.any?
      end
      profile
    end

    # This program is an rperf command, which users don't want to see in the profile.
    def withdraw
      Ops.release
      Targets.release
      Native.withdraw
      Session.leave(self)
    end

    private

    # Profiling has ended.
    def finish(profile)
      Session.leave(self)
      return unless profile

      # If it is written, it isn't lost.
      Session.interrupted = self unless options.output
      @profile = profile
      begin
        @profile = destination.deliver(profile)
      ensure
        @shared&.close
      end
    end

    # Other threads run while a profile is made, and may raise something here: that waits until it is whole.
    def whole(&) = Thread.handle_interrupt(Object => :never, &)
  end
  private_constant :Session
end
