# frozen_string_literal: true

require "socket"

module Rperf
  class PprofEndpoint
    # A question to the port of this process, and its answer.
    class Question
      # How often it is looked whether the server ends, in seconds. So the thread that asks also runs Ruby code, if no
      # other does: then the port is served.
      STEP = 0.02
      # How long the answer may take beyond the time that is profiled, in seconds.
      PATIENCE = 10
      HEAD_END = "\r\n\r\n"
      # Bytes of a path that a socket's address has room for.
      LONGEST_PATH = 107
      private_constant :STEP, :PATIENCE, :HEAD_END, :LONGEST_PATH

      # @param place [String] below /debug/pprof
      # @param seconds [String, nil] the time to profile
      def initialize(place, seconds = nil)
        @target = "/debug/pprof#{place}#{"?seconds=#{seconds}" if seconds}"
        @patience = seconds.to_f + PATIENCE
      end

      # @return [Array] the Rack response
      def answer
        path = Rperf.listen or return Web::Answer.text(503, "Nothing can be profiled in this process.")
        connected(path) { |port| response(talk(port)) }
      rescue Error, ArgumentError, SystemCallError, IOError => e
        Web::Answer.text(503, "This process can't be asked: #{e.message.lines.first.to_s.chomp}")
      end

      private

      def connected(path, &)
        return UNIXSocket.open(path, &) if path.bytesize <= LONGEST_PATH

        Dir.open(File.dirname(path)) do |folder|
          UNIXSocket.open("/proc/self/fd/#{folder.fileno}/#{File.basename(path)}", &)
        end
      end

      # @return [String, nil] all that the port says; nil if it takes too long
      def talk(port)
        port.write("GET #{@target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = "".b
        ends = now + @patience
        while now < ends
          piece = port.read_nonblock(1 << 16, exception: false)
          return answer if piece.nil?
          next answer << piece if piece.is_a?(String)

          # The profile ends where nobody asks any more.
          cut_short(port) if !@is_cut_short && @target.include?("?") && server_ends?
          port.wait_readable(STEP)
        end
      end

      def response(answer)
        head, body = answer&.split(HEAD_END, 2)
        status = head.to_s[%r{\AHTTP/1.1 (\d+)}, 1]
        return Web::Answer.text(504, "Ruby's VM has taken too long to answer.") unless body && status

        type = head[%r{^content-type: ([\w/-]+)}i, 1]
        return Web::Answer.data(body) if type == "application/octet-stream"

        Web::Answer.text(status.to_i, body.chomp)
      end

      def cut_short(port)
        port.close_write
        @is_cut_short = true
      end

      # Puma waits for its requests; others end them.
      def server_ends?
        defined?(::Puma::Server) && ::Puma::Server.current&.shutting_down?
      rescue NoMethodError
        false # Of another version.
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_constant :Question
  end
end
