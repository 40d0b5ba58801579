# frozen_string_literal: true

require_relative "../processes/shared_session"
require_relative "session"

module Rperf
  # The destination of a program that is profiled as a whole without an rperf command: the profile goes to a file, and
  # the page and the tables to stderr (ext/rperf/src/whole/alone.rs).
  class Standalone
    # @param settings [Settings]
    # @raise [Rperf::Error] if profiling can't start
    def self.begin(settings)
      options = settings.options
      shared = SharedSession.create(options, settings.initiator) if options.inherit
      Session.new(options, new(settings, shared), initiator: settings.initiator, shared:).begin
    rescue StandardError
      shared&.close
      raise
    end

    # @return [Settings] with which a daemon of the program begins anew
    attr_reader :settings

    def initialize(settings, shared)
      @settings = settings
      @shared = shared
    end

    # @param options [NativeSettings]
    # @raise [Rperf::Error] if profiling can't start
    def start(options) = Native.start_alone(options, @shared&.made, @settings.variables)
  end
  private_constant :Standalone
end
