# frozen_string_literal: true

# Loads a server: client.rb KIND PORT CONNECTIONS RATE SECONDS sends requests (or, for jobs, waits for each that it
# pushes) over CONNECTIONS connections that stay open, RATE a second in all, at times that are fixed beforehand; 0: each
# as soon as the last is answered. Prints as JSON how many there were, and how long they took: with a new connection
# where the server has closed the last one.

require "json"
require "socket"
require_relative "../support/clock"
require_relative "../support/http"
require_relative "../support/statistics"

# One connection, and the requests sent over it.
class Connection
  attr_reader :latencies

  def initialize(port)
    @port = port
    @latencies = []
    connect
  end

  # One at least.
  # @param interval [Float, nil] in ns
  def send_requests(first, interval, ends)
    due = first
    loop do
      wait_until(due) if interval
      due += interval.to_f
      started = Bench::Clock.wall
      request
      @latencies << (Bench::Clock.wall - started)
      break if [due, Bench::Clock.wall].max >= ends
    end
    @socket.close
  end

  private

  def wait_until(due)
    now = Bench::Clock.wall
    sleep((due - now) / 1e9) if due > now
  end

  def connect
    @socket = TCPSocket.new("127.0.0.1", @port)
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  end
end

# To a web server.
class WebConnection < Connection
  REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

  private

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

# To the Redis of Sidekiq.
class JobConnection < Connection
  @count = 0

  class << self
    def next_number = @count += 1
  end

  private

  def request
    @list ||= "answers-#{self.class.next_number}"
    now = Process.clock_gettime(Process::CLOCK_REALTIME)
    job = { class: "Web::BenchJob", args: [@list], queue: "default", jid: "#{@list}-#{now}", retry: false,
            created_at: now, enqueued_at: now }
    tell("LPUSH", "queue:default", JSON.generate(job))
    @socket.gets("\r\n")
    tell("BRPOP", @list, "0")
    # An Array of two Strings, each after a line with its length.
    5.times { @socket.gets("\r\n") }
  end

  def tell(*words)
    @socket.write("*#{words.size}\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
  end
end

kind, *numbers = ARGV
port, connections, rate = numbers.first(3).map { |number| Integer(number) }
seconds = Float(numbers.fetch(3))
opened = Array.new(connections) { (kind == "sidekiq" ? JobConnection : WebConnection).new(port) }
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
