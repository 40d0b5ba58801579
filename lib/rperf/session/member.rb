# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "process_stats"
require_relative "session"

module Rperf
  # The destination of a process that takes part in a session of several: the profile goes into the session's
  # directory, to be merged there. Each step of the process is reported in a line of the session's status file.
  class Member
    # @param shared [SharedSession] what this process takes part in
    # @param inherited [Boolean] whether its forked children do, too
    # @param before [Hash] what a parent had counted when it forked this process
    def self.begin(shared, inherited: true, before: {})
      member = new(shared, before)
      Session.new(shared.options, member, initiator: shared.initiator, shared: inherited ? shared : nil).begin
      member.report(:started)
    end

    def initialize(shared, before)
      @shared = shared
      @before = before
      @begun_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # @return [nil] a daemon joins the session itself, if it is to be profiled
    def settings = nil

    # Called again with the same profile, it does the steps that an interruption has left.
    def deliver(profile, **)
      # First, so that the figures don't include the writing.
      stats = Native.stats_line(ProcessStats.since(@before))
      write(profile) unless @written.equal?(profile)
      report(:delivered, stats)
    rescue Errno::ENOENT
      @written = nil # The session has ended, and has said that this process still ran.
    rescue SystemCallError, Error => e
      @written = nil
      reason = e.message.scrub.sub(/ - .*/m, "")
      Message.say("the profile of process #{Process.pid} is lost: can't write to #{@shared.directory} (#{reason})")
      report(:failed)
    end

    # A program started by exec finds the session by itself.
    def hand_over = nil
    def take_back = nil

    # @param event [Symbol] crates/rperf-session/src/event.rs has them
    def report(event, stats = nil) = @shared.report(event, @begun_ns, stats)

    private

    def write(profile)
      path = Native.member_profile_path(@shared.directory, @begun_ns)
      # No interrupt can come between these two.
      @written = profile
      profile.write(path, :pprof)
    end
  end
  private_constant :Member
end
