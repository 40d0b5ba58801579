# frozen_string_literal: true

require_relative "port"

module Rperf
  # A question to the port of this process, on a thread of the program that waits for the answer.
  class OwnPort
    # What the port says.
    Answer = Struct.new(:status, :type, :body)
    # How often the thread that asks runs Ruby code, in seconds: if no other does, the port is served. It does so for
    # FIRST seconds, in which a session begins; then the helper does.
    STEP = 0.02
    FIRST = 1
    HEAD_END = "\r\n\r\n"
    # Bytes of a path that a socket's address has room for.
    LONGEST_PATH = 107
    private_constant :STEP, :FIRST, :HEAD_END, :LONGEST_PATH

    # @param patience [Numeric] seconds that the answer may take
    # @param ends [Proc, nil] says every 0.02 seconds whether a profile is to end now
    # @return [Answer, nil] nil: it takes too long
    # @raise [Rperf::Error, SystemCallError, IOError] if there is no port
    def self.ask(path, target, patience:, ends: nil)
      load
      new(path, target, patience, ends).answer
    end

    # A thread that loads files beside a busy one waits for the GVL at each of them: a program may have them be loaded
    # before.
    def self.load = require("socket")

    def initialize(path, target, patience, ends)
      @path = path
      @target = target
      @patience = patience
      @ends = ends
    end

    def answer
      connected { |port| parsed(talk(port)) }
    end

    private

    def connected(&)
      return UNIXSocket.open(@path, &) if @path.bytesize <= LONGEST_PATH

      Dir.open(File.dirname(@path)) do |directory|
        UNIXSocket.open("/proc/self/fd/#{directory.fileno}/#{File.basename(@path)}", &)
      end
    end

    # @return [String, nil] all that the port says
    def talk(port)
      port.write("GET #{@target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      answer = "".b
      began = now
      while (rest = began + @patience - now).positive?
        piece = port.read_nonblock(1 << 16, exception: false)
        return answer if piece.nil?
        next answer << piece if piece.is_a?(String)

        cut_short(port) if @ends&.call
        port.wait_readable(@ends || now < began + FIRST ? STEP : rest)
      end
    end

    # The profile ends where nobody asks any more.
    def cut_short(port)
      @ends = nil
      port.close_write
    end

    def parsed(answer)
      head, body = answer&.split(HEAD_END, 2)
      status = head.to_s[%r{\AHTTP/1.1 (\d+)}, 1]
      Answer.new(status.to_i, head[%r{^content-type: ([\w/-]+)}i, 1], body) if body && status
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
  private_constant :OwnPort
end
