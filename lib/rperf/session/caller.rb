# frozen_string_literal: true

require_relative "../errors"
require_relative "../processes/shared_session"
require_relative "session"

module Rperf
  # The destination of a session that Rperf.start has begun: the profile goes back to the program, and to the output
  # that it has asked for.
  class Caller
    # @raise [Rperf::Error] if profiling is on already or can't start
    def self.begin(options)
      is_free = !Native.running? || Native.live?
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
      profile = @shared ? @shared.merge(own) : own
      $stderr.write(profile.verbose_lines) if @options.verbose
      profile.deliver(@options.output, @options.format, lines: @options.show_lines?) if @options.output
      profile
    end

    # The session ends with the program.
    def settings = nil
  end
  private_constant :Caller
end
