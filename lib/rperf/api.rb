# frozen_string_literal: true

require_relative "options"
require_relative "result"
require_relative "profile"
require_relative "loading"
require_relative "fork_guard"
require_relative "labels"
require_relative "sections"
require_relative "snapshot"

# A sampling profiler for CRuby. See {Rperf.start}.
module Rperf
  private_constant :Native, :NativeProfile, :NativeSettings

  class << self
    # Profiles the block, or, without one, all that runs until {Rperf.stop}.
    #
    # @param settings [Hash{Symbol => Object}] `frequency: 1000`, `mode: :cpu`, `output: nil` and others:
    #   docs/guide/ruby-api.md has them all, with their defaults, and `rperf help ruby-api` prints it
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
      options = @options or return
      profile = uninterrupted { end_session(options) }
      profile && Result.from_profile(profile)
    end

    # Writes a profile to a file.
    #
    # @param path [String, Pathname] the file
    # @param data [Hash] a {Profile}, or a Hash like it
    # @param format [Symbol, nil] :pprof, :collapsed, :text, :markdown, :json or :html; nil: by the file's
    #   extension
    # @param lines [Boolean] whether a text file has a table of the hottest lines
    # @return [nil]
    # @raise [ArgumentError] for an argument that isn't allowed, or a Hash that isn't a profile
    # @raise [SystemCallError] if the file can't be written
    def save(path, data, format: nil, lines: false)
      path = Options.path(:path, path)
      format = Options.format(format)
      lines = Options.one_of(:lines, lines, [true, false])
      profile = Result.profile(data)
      Output.flush_before(path)
      profile.write(path, format, lines:)
      nil
    end

    # @return [Boolean] whether profiling is on
    def running? = Native.running?

    private

    def begin_session(options)
      refuse_second_profiler
      share_and_start(options)
    end

    # No session for children is there but the one that this makes, if any.
    def share_and_start(options)
      ForkGuard.install
      Children.share(options, "its parent's Rperf.start") if options.inherit && !Native.running?
      uninterrupted do
        Native.start(options.sampling)
        @options = options
      end
    rescue Error, ArgumentError, SystemCallError
      Children.close unless @options
      raise
    end

    # Returns the profile, when it has been written.
    def end_session(options)
      profile = Native.stop
      @options = nil
      return unless profile

      profile = Children.merge(profile)
      $stderr.write(profile.verbose_lines) if options.verbose
      Output.write(profile, options) if options.output
      profile
    end

    # Half of the block would be a session that nobody can stop, or a lost profile: Timeout and
    # Thread#kill come after it.
    def uninterrupted(&) = Thread.handle_interrupt(Object => :never, &)

    # In a forked child whose session isn't its own to stop.
    def leave_session = @options = nil

    # Of a program that is profiled as a whole, Rperf.stop can't end the session.
    def refuse_second_profiler
      return if @options || !Native.running? || !defined?(Autostart)

      raise Error, "this program is already being profiled by #{Autostart.initiator}"
    end

    # What the block raised matters more than a profile that can't be written.
    def stop_after_exception
      stop
    rescue Error => e
      $stderr.write("rperf: #{e.message}\n")
    end
  end
end
