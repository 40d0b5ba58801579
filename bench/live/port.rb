# frozen_string_literal: true

require "json"
require "socket"
require_relative "../support/clock"

module Live
  # A connection to a port: plain HTTP, read by nothing but this.
  class Port
    # The port's answer is that there is none.
    class Refused < StandardError; end

    # What an answer's body begins with: a magic word, and the length of its header.
    HEADER = 8

    def self.open(path)
      port = new(UNIXSocket.new(path))
      yield port
    ensure
      port&.close
    end

    def initialize(socket)
      @socket = socket
      @socket.timeout = 60
    end

    def close = @socket.close

    # @return [String] the body
    def get(target, method = "GET")
      send(target, method)
      read
    end

    def send(target, method = "GET") = @socket.write("#{method} #{target} HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def read
      status = @socket.gets("\r\n").to_s
      length = 0
      while (line = @socket.gets("\r\n").chomp) != ""
        length = Integer(line[/\d+/]) if line.start_with?(/content-length/i)
      end
      body = @socket.read(length)
      raise Refused, "#{status.chomp}: #{body}" unless status.start_with?("HTTP/1.1 200")

      body
    end

    # How long the answer takes.
    # @return [Integer] ns
    def time(target, method = "GET")
      began = Bench::Clock.wall
      get(target, method)
      Bench::Clock.wall - began
    end

    # All that has changed since the last call: a client that watches pulls this.
    # @return [Integer] bytes
    def pull(wait_ms = 20)
      bytes = 0
      loop do
        body = get("/v1/delta?at=#{@cursor}&wait_ms=#{wait_ms}".sub("at=&", ""))
        header = JSON.parse(body.byteslice(HEADER, body.byteslice(HEADER - 4, 4).unpack1("V")))
        @cursor = header.fetch("cursor")
        bytes += body.bytesize
        return bytes unless header["more"]

        # The rest is of the same step.
        wait_ms = 0
      end
    end

    # Pulls so often while the block runs.
    # @return [Array] what the block returned, and the bytes of each pull
    def self.watching(path, hertz)
      over = false
      sizes = []
      self.open(path) do |port|
        watcher = Thread.new { port.watch(1.0 / hertz, sizes) until over }
        result = yield
        over = true
        watcher.join
        [result, sizes]
      end
    end

    def watch(pause, sizes)
      sizes << pull
    rescue Refused
      nil # No Ruby code has run yet.
    ensure
      sleep(pause)
    end
  end
end
