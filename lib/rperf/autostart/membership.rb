# frozen_string_literal: true

module Rperf
  module Autostart
    # One program's part in a session of several processes: leaves its profile in the
    # session's folder, and tells what becomes of it: crates/rperf-session/src/event.rs has the
    # events.
    class Membership
      # @param begun_ns [Integer] CLOCK_MONOTONIC when profiling started
      # @param before [Hash] what a parent had counted when it forked this process
      def initialize(session, begun_ns, before = {})
        @session = session
        @begun_ns = begun_ns
        @before = before
        report(:started)
      end

      # A daemon joins the session itself.
      def settings = nil

      # Called again with the same profile, it does what an interruption has left to do.
      def deliver(profile, **)
        # Before what follows is counted, too.
        stats = Native.stats_line(Counters.since(@before))
        write(profile) unless @written.equal?(profile)
        report(:delivered, stats)
      rescue Errno::ENOENT
        @written = nil # The session has ended, and has said that this process still ran.
      rescue SystemCallError, Error => e
        @written = nil
        reason = e.message.scrub.sub(/ - .*/m, "")
        Autostart.say("the profile of process #{Process.pid} is lost: can't write to #{@session.folder} (#{reason})")
        report(:failed)
      end

      # A program after exec finds the session by itself.
      def hand_over = nil
      def take_back = nil

      def report(event, stats = nil) = @session.report(event, @begun_ns, stats)

      private

      def write(profile)
        path = Native.member_profile_path(@session.folder, @begun_ns)
        # No interrupt can come between these two.
        @written = profile
        profile.write(path, :pprof)
      end
    end
    private_constant :Membership
  end
end
