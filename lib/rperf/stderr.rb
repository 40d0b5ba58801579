# frozen_string_literal: true

module Rperf
  # Lines for the user where the extension, which has {Message}, may not be there. Any Ruby may load this file: no
  # syntax newer than Ruby 2.5.
  module Stderr
    class << self
      # That nobody can be told is no reason to fail.
      # @param text [String]
      # @param stderr [IO, Object] the program's $stderr, or as Ruby has made it
      # @return [nil]
      def write(text, stderr = STDERR)
        stderr.write(text) if room?(stderr, text.bytesize)
        nil
      rescue IOError, SystemCallError, EncodingError
        nil
      end

      private

      # A write to a file that may not get larger (RLIMIT_FSIZE) sends SIGXFSZ, which ends the program.
      def room?(stderr, bytes)
        return true unless stderr.is_a?(IO) && (limit = Process.getrlimit(:FSIZE).first) != Process::RLIM_INFINITY

        stat = stderr.stat
        # If all is appended, the place isn't known before.
        !stat.file? || [stat.size, stderr.pos].max + bytes <= limit
      rescue NotImplementedError
        true # Not everywhere is there such a limit.
      end
    end
  end
  private_constant :Stderr
end
