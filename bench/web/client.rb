# frozen_string_literal: true

# Loads a web server: client.rb PORT CONNECTIONS RATE SECONDS sends requests over CONNECTIONS connections that stay
# open, RATE a second in all, at times that are fixed beforehand; 0: each as soon as the last is answered. Prints as
# JSON how many there were, and how long they took: with a new connection where the server has closed the last one.

require "json"
require "socket"
require_relative "../support/clock"
require_relative "../support/http"
require_relative "../support/statistics"

# One connection, and the requests sent over it.
class Connection
  REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

  attr_reader :latencies

  def initialize(port)
    @port = port
    @latencies = []
    connect
  end

  # @param interval [Float, nil] in ns
  def send_requests(first, interval, ends)
    due = first
    while (now = Bench::Clock.wall) < ends
      if interval
        sleep((due - now) / 1e9) if due > now
        due += interval
      end
      started = Bench::Clock.wall
      request
      @latencies << (Bench::Clock.wall - started)
    end
    @socket.close
  end

  private

  def connect
    @socket = TCPSocket.new("127.0.0.1", @port)
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  end

  def request
    unless (status = ask)
      @socket.close
      connect
      status = ask
    end
    Bench::HTTP.read(@socket, status)
  end

  # @return [String, nil] the first line of the answer; nil if the connection was closed
  def ask
    @socket.write(REQUEST)
    @socket.gets("\r\n")
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end
end

port, connections, rate = ARGV.first(3).map { |number| Integer(number) }
seconds = Float(ARGV.fetch(3))
opened = Array.new(connections) { Connection.new(port) }
started = Bench::Clock.wall
interval = connections * 1e9 / rate if rate.positive?
threads = opened.each_with_index.map do |connection, number|
  first = started + (interval.to_f / connections * number)
  Thread.new { connection.send_requests(first, interval, started + (seconds * 1e9)) }
end
threads.each(&:join)
latencies = opened.flat_map(&:latencies)
puts JSON.generate(requests: latencies.size, p50_ns: Bench::Statistics.quantile(latencies, 0.5),
                   p99_ns: Bench::Statistics.quantile(latencies, 0.99))
