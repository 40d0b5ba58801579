# frozen_string_literal: true

require_relative "../hooks/ends"
require_relative "../hooks/fork_guard"
require_relative "../session/caller"
require_relative "../session/options"
require_relative "profile"

# Begin and end of profiling by a program itself.
module Rperf
  class << self
    # Profiles the block, or, without one, all that runs until {Rperf.stop}.
    #
    # @param settings [Hash{Symbol => Object}] what to profile, and how; docs/guide/ruby-api.md has them all
    # @option settings [Integer] :frequency (1000) samples per second, 1 to 10000
    # @option settings [Symbol] :mode (:cpu) :cpu (CPU time of each thread) or :wall (all time of each thread)
    # @option settings [String, Pathname, nil] :output (nil) the file to write when profiling ends
    # @option settings [Boolean] :verbose (false) prints sampling statistics to stderr at the end
    # @option settings [Symbol, nil] :format (nil) :pprof, :collapsed, :text, :markdown, :json or :html; nil: by the
    #   file's extension
    # @option settings [Integer, false, nil] :signal (nil) the timer's real-time signal; nil: the default one, false: no
    #   signal but a thread that sleeps
    # @option settings [Boolean] :aggregate (true) false keeps every sample with its time
    # @option settings [Boolean, nil] :lines (nil) false: no line numbers are recorded; true: they are, and a text
    #   output has a table of the hottest lines; nil: they are recorded
    # @option settings [Symbol, nil] :capture (nil) when stacks are taken. :tick: at the tick itself, for which the
    #   thread that runs gets SIGURG; :safepoint: where Ruby next looks for interrupts, which takes no signal, but gives
    #   time to the wrong methods and, under a JIT, makes the program slower; nil: :tick where a signal may be used,
    #   else :safepoint
    # @option settings [Boolean] :defer (false) true profiles only what runs in blocks of {Rperf.profile}
    # @option settings [Boolean, Symbol] :inherit (false) :fork: children that this process forks are profiled too, and
    #   those that they fork; true: Rubies that it starts in any other way as well, for which RUBYOPT and RPERF_SESSION
    #   are in ENV while profiling is on. {Rperf.stop} merges what has ended by then. Not with aggregate: false
    # @return [Profile, true] the block's profile as {Rperf.stop} gives it; true without a block
    # @raise [ArgumentError] for an argument that isn't allowed
    # @raise [Rperf::Error] if profiling is on already or can't start
    def start(**settings)
      options = Options.from_keywords(settings)
      begin_session(options)
      return true unless block_given?

      begin
        yield
        returned = true
        stop
      ensure
        stop_after_exception unless returned
      end
    end

    # Ends profiling, and writes the profile if {Rperf.start} was given an output.
    # After {Rperf.snapshot} with clear: true it is of the time since then.
    #
    # @return [Profile, nil] the profile, a Hash; nil if {Rperf.start} wasn't called
    # @raise [Rperf::Error] if the output can't be written; the message names the
    #   file to which the profile was written instead
    def stop
      session = Session.running
      # Of a program that is profiled as a whole, the session isn't the program's to end.
      return if session.nil? || session.initiator

      profile = uninterrupted { session.stop }
      profile && Profile.from_native(profile)
    end

    # @return [Boolean] whether profiling is on
    def running? = Native.running?

    private

    def begin_session(options)
      initiator = Session.running&.initiator
      raise Error, "this program is already being profiled by #{initiator}" if initiator

      ForkGuard.install
      # Forked children deliver their profiles at their ends.
      Ends.install if options.inherit
      uninterrupted { Caller.begin(options) }
    end

    # Half of the block would be a session that nobody can stop, or a lost profile: Timeout and
    # Thread#kill come after it.
    def uninterrupted(&) = Thread.handle_interrupt(Object => :never, &)

    # What the block raised matters more than a profile that can't be written.
    def stop_after_exception
      stop
    rescue Error => e
      $stderr.write("rperf: #{e.message}\n")
    end
  end
end
