# frozen_string_literal: true

require_relative "../argument"
require_relative "../hooks/ends"
require_relative "../hooks/fork_guard"
require_relative "../live/helper"
require_relative "../session/caller"
require_relative "../session/options"
require_relative "../stderr"
require_relative "account"
require_relative "profile"

# Begin and end of profiling by a program itself.
module Rperf
  # Only blocks that were there when rperf was loaded run after this one.
  at_exit { Native.write_at_exit }

  class << self
    # Profiles the block, or, without one, all that runs until {Rperf.stop}.
    #
    # @param settings [Hash{Symbol => Object}] `frequency: 1000`, `mode: :cpu`, `output: nil` and others:
    #   docs/guide/ruby-api.md has them all, with their defaults, and `rperf help ruby-api` prints it.
    #   `mode: :account` takes no samples: each request and job gets an {Account}; a session can begin and end meanwhile
    # @return [Profile, Hash, true] the block's profile as {Rperf.stop} gives it; for `mode: :account`, what
    #   {Rperf.accounts} says at its end; true without a block
    # @raise [ArgumentError] for an argument that isn't allowed
    # @raise [StandardError] what the to_s of a key or value in `labels:` raises, as in {Rperf.label}
    # @raise [Rperf::Error] if profiling is on already or can't start
    def start(**settings, &)
      return start_accounts(settings, &) if Accounts.mode?(settings[:mode])

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
    # After {Rperf.snapshot} with clear: true it is of the time since then. If a handler of a signal raises something
    # meanwhile, the profile isn't lost: it is written or, without an output, what the next call returns.
    #
    # @param mode [nil, :account] `:account` ends what `Rperf.start(mode: :account)` has begun, and no session
    # @return [Hash] for `:account`, what {Rperf.accounts} says
    # @return [Profile, nil] the profile, a Hash; nil if {Rperf.start} wasn't called
    # @raise [Rperf::Error] if the output can't be written; the message names the
    #   file to which the profile was written instead
    def stop(mode: nil)
      return Accounts.end if Accounts.mode?(mode)

      Argument.reject(:mode, mode, "nil or :account") unless mode.nil?
      session = Session.running
      # Of a program that is profiled as a whole, the session isn't the program's to end.
      return if session&.initiator

      native = session ? uninterrupted { session.stop } : Session.interrupted&.profile
      profile = native && Profile.from_native(native)
      Session.interrupted = nil if native
      profile
    end

    # @return [Boolean] whether profiling is on
    def running? = Native.running? && !Native.of_clients?

    private

    # With a block, what {Rperf.accounts} says at its end.
    def start_accounts(settings)
      return uninterrupted { Accounts.begin(settings) } unless block_given?

      kept = nil
      begin
        begun = uninterrupted { Accounts.begin(settings) }
        yield
      ensure
        kept = Accounts.end if begun
      end
      kept
    end

    def begin_session(options)
      initiator = Session.running&.initiator
      raise Error, "this program is already being profiled by #{initiator}" if initiator

      ForkGuard.install
      # Forked children deliver their profiles at their ends.
      Ends.install if options.inherit
      uninterrupted do
        Helper.give_way
        Caller.begin(options)
        Session.interrupted = nil
      end
    end

    # Half of the block would be a session that nobody can stop, or a lost profile: Timeout and
    # Thread#kill come after it.
    def uninterrupted(&) = Thread.handle_interrupt(Object => :never, &)

    # What the block raised matters more than a profile that can't be written.
    def stop_after_exception
      stop
    rescue Error => e
      Stderr.write("rperf: #{e.message}\n", $stderr)
    end
  end
end
