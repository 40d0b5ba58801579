# frozen_string_literal: true

require_relative "../errors"
require_relative "../processes/shared_session"
require_relative "../stderr"
require_relative "session"

module Rperf
  # The destination of a session that Rperf.start has begun: the profile goes back to the program, and to the output
  # that it has asked for.
  class Caller
    # @raise [Rperf::Error] if profiling is on already or can't start
    def self.begin(options)
      is_free = !Native.running? || Native.of_clients?
      shared = SharedSession.create(options, "its parent's Rperf.start") if options.inherit && is_free
      Session.new(options, new(options, shared), shared:).begin
    rescue Error, ArgumentError, SystemCallError
      shared&.close
      raise
    end

    def initialize(options, shared)
      @options = options
      @shared = shared
    end

    # @param settings [NativeSettings]
    def start(settings) = Native.start(settings)

    # @return [NativeProfile] with what children have delivered
    # @raise [Rperf::Error] if it can't be written; says where it is now
    def deliver(own)
      profiles = [own]
      begin
        @shared&.merge_into(profiles, own)
        Stderr.write(profiles.last.verbose_lines, $stderr) if @options.verbose
      ensure
        # A handler of a signal may have raised something.
        write(profiles.last)
      end
      profiles.last
    end

    # The session ends with the program.
    def settings = nil

    private

    def write(profile)
      profile.deliver(@options.output, @options.format, lines: @options.show_lines?) if @options.output
    end
  end
  private_constant :Caller
end
