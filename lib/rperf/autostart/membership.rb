# frozen_string_literal: true

module Rperf
  module Autostart
    # One program's part in a session of several processes: leaves its profile in the
    # session's folder, and tells what becomes of it. crates/rperf-cli/src/status.rs
    # reads what it tells.
    class Membership
      # @param begun_ns [Integer] CLOCK_MONOTONIC when profiling started
      # @param before [Hash] what a parent had counted when it forked this process
      def initialize(session, begun_ns, before = {})
        @session = session
        @begun_ns = begun_ns
        @before = before
        session.report("started #{Process.pid} #{Native.process_start} #{begun_ns}")
      end

      def deliver(profile)
        profile.write(File.join(@session.folder, "#{Process.pid}-#{@begun_ns}.pb.gz"), :pprof)
        report("delivered", " #{Native.figures_line(Counters.since(@before))}")
      rescue Errno::ENOENT
        nil # The session has ended, and has said that this process still ran.
      rescue SystemCallError, Error => e
        reason = e.message.sub(/ - .*/m, "")
        Autostart.say("the profile of process #{Process.pid} is lost: can't write to #{@session.folder} (#{reason})")
        report("failed")
      end

      def report(word, more = "")
        @session.report("#{word} #{Process.pid} #{@begun_ns}#{more}")
      end
    end
    private_constant :Membership
  end
end
