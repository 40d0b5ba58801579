# frozen_string_literal: true

module Rperf
  # Writes a profile at the end of a session, where it must not get lost.
  module Output
    class << self
      # @raise [Rperf::Error] if it couldn't be written there; says where it is now
      def write(profile, path, format)
        $stdout.flush if %w[/dev/stdout /dev/fd/1 /proc/self/fd/1].include?(path)
        profile.write(path, format)
      rescue Errno::EPIPE
        nil # Whoever reads has seen enough.
      rescue SystemCallError, IOError, Error => e
        raise Error, "can't write the profile to #{path} (#{reason(e)}); #{save_elsewhere(profile)}"
      end

      private

      def reason(error) = error.message.sub(/ - .*/m, "").sub(/ @ \w+\z/, "")

      # tmpdir isn't required for this: the program may be past loading anything.
      def save_elsewhere(profile)
        folder = ENV["TMPDIR"].to_s.empty? ? "/tmp" : ENV["TMPDIR"]
        time = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
        path = File.join(folder, "rperf-#{Process.pid}-#{time}.pb.gz")
        profile.write(path, :pprof)
        "it is in #{path} (pprof)"
      rescue SystemCallError, IOError, Error => e
        "it is lost: neither can #{path} be written (#{reason(e)}); free some space or set TMPDIR"
      end
    end
  end
  private_constant :Output
end
