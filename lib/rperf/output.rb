# frozen_string_literal: true

module Rperf
  # Writes a profile at the end of a session, where it must not get lost.
  module Output
    # Names of open descriptors. They are written to as they are, also where they
    # lead to a file; crates/rperf-session/src/output/descriptor.rs knows the same.
    STANDARD = { "/dev/stdin" => 0, "/dev/stdout" => 1, "/dev/stderr" => 2 }.freeze
    NUMBERED = %r{\A/(?:dev|proc/self)/fd/(\d+)\z}
    private_constant :STANDARD, :NUMBERED

    class << self
      # @return [Integer, nil] the number of the descriptor that `path` is a name of
      def descriptor(path) = STANDARD[path] || path.b[NUMBERED, 1]&.to_i

      # @param options [Options] with an output
      # @raise [Rperf::Error] if it couldn't be written there; says where it is now
      def write(profile, options)
        path = options.output
        flush_before(path)
        profile.write(path, options.format, lines: options.show_lines?)
      rescue SystemCallError, IOError, Error => e
        raise Error, save_elsewhere(profile, path, e)
      end

      # @param error [Exception] why it couldn't be written to `path`
      # @return [String] what has become of it
      def save_elsewhere(profile, path, error)
        "can't write the profile to #{path} (#{reason(error)}); #{save_in_temporary_folder(profile)}"
      end

      # What the program has printed comes before the profile.
      def flush_before(path)
        $stdout.flush if descriptor(path) == 1
      rescue SystemCallError, IOError
        nil # Closed, or nobody reads it: the profile fares as it will.
      end

      private

      # Paths in it need not be text in the locale's encoding.
      def reason(error) = error.message.scrub.sub(/ - .*/m, "").sub(/ @ \w+\z/, "")

      # tmpdir isn't required for this: the program may be past loading anything.
      def save_in_temporary_folder(profile)
        folder = ENV["TMPDIR"].to_s.start_with?("/") ? ENV["TMPDIR"] : "/tmp"
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
