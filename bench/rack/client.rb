# frozen_string_literal: true

# Loads the Rack application: client.rb PORT CONNECTIONS LIMIT sends requests over
# CONNECTIONS connections that stay open, the next when the last is answered,
# LIMIT ("600" or "60s") in all. Prints as JSON how long they took.

require "json"
require "socket"
require_relative "../support/clock"
require_relative "../support/http"
require_relative "../support/statistics"

# One connection, and the requests sent over it.
class Connection
  PATHS = %w[/api/products /products /orders /api/products].freeze

  attr_reader :latencies

  def initialize(port, number)
    @socket = TCPSocket.new("127.0.0.1", port)
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    @number = number
    @latencies = []
  end

  # @yieldreturn [Boolean] whether to send another
  def send_requests
    while yield
      started = Bench::Clock.wall
      request(PATHS[(@number + @latencies.size) % PATHS.size], @latencies.size)
      @latencies << (Bench::Clock.wall - started)
    end
    @socket.close
  end

  private

  def request(path, number)
    @socket.write("GET #{path}?q=#{@number}-#{number} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    Bench::HTTP.read(@socket, @socket.gets("\r\n"))
  end
end

port, connections, limit = ARGV
port = Integer(port)
ends = limit.end_with?("s") ? Bench::Clock.wall + (Float(limit.delete_suffix("s")) * 1e9) : nil
left = ends ? nil : Integer(limit)
more = ends ? -> { Bench::Clock.wall < ends } : -> { (left -= 1) >= 0 }

opened = Array.new(Integer(connections)) { |number| Connection.new(port, number) }
started = Bench::Clock.wall
opened.map { |connection| Thread.new { connection.send_requests(&more) } }.each(&:join)
wall_ns = Bench::Clock.wall - started
latencies = opened.flat_map(&:latencies)
puts JSON.generate(wall_ns:, requests: latencies.size, p50_ns: Bench::Statistics.quantile(latencies, 0.5),
                   p99_ns: Bench::Statistics.quantile(latencies, 0.99))
