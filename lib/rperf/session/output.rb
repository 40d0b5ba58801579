# frozen_string_literal: true

module Rperf
  # Writes a profile at the end of a session, where it must not get lost.
  module Output
    class << self
      # @param options [Options] with an output
      # @raise [Rperf::Error] if it couldn't be written there; says where it is now
      def write(profile, options)
        flush_before(options.output)
        messages = []
        # One call of C, in which nothing can interrupt it.
        profile.deliver(options.output, options.format, messages, lines: options.show_lines?)
        raise Error, messages.first unless messages.empty?
      end

      # What the program has printed comes before the profile.
      def flush_before(path)
        $stdout.flush if Native.descriptor(path) == 1
      rescue SystemCallError, IOError
        nil # Closed, or nobody reads it: the profile fares as it will.
      end
    end
  end
  private_constant :Output
end
