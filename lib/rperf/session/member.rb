# frozen_string_literal: true

require_relative "session"

module Rperf
  # The destination of a process that takes part in a session of several: the profile goes into the session's
  # directory, to be merged there (ext/rperf/src/whole/member.rs).
  class Member
    # @param shared [SharedSession] what this process takes part in
    # @param inherited [Boolean] whether its forked children do, too
    # @param forked [Boolean] whether its parent did, which has forked it
    def self.begin(shared, inherited: true, forked: false)
      member = new(shared, forked)
      Session.new(shared.options, member, initiator: shared.initiator, shared: inherited ? shared : nil).begin
    end

    def initialize(shared, forked)
      @shared = shared
      @forked = forked
    end

    # @param settings [NativeSettings]
    # @raise [Rperf::Error] if profiling can't start
    def start(settings) = Native.start_as_member(settings, @shared.directory, @forked)

    # @return [nil] a daemon joins the session itself, if it is to be profiled
    def settings = nil
  end
  private_constant :Member
end
