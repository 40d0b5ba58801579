# frozen_string_literal: true

# A server on a free port of this machine, which it prints: server.rb KIND, with a kind of {Web::SERVERS}. Each request,
# or job, computes for 200 us. It then takes commands, one a line, and answers each with JSON: "start PROFILER HERTZ",
# "measure" (from here on, the CPU time that "stop" tells), "stop". It ends when its input does.

require "json"
require "socket"
require_relative "../support/clock"
require_relative "../support/own_threads"
require_relative "../support/profilers"
require_relative "jobs"

module Web
  WORK_NS = 200_000
  # As many as there are connections at most.
  THREADS = 16
  BODY = "ok\n"
  HEADERS = { "content-type" => "text/plain", "content-length" => BODY.bytesize.to_s }.freeze

  # The application.
  module App
    def self.compute(turns)
      turn = 0
      turn += 1 while turn < turns
    end

    # How many turns take as long as a request is to compute, by the thread's CPU clock.
    def self.calibrate
      times = Array.new(50) do
        started = Bench::Clock.thread_cpu
        compute(10_000)
        Bench::Clock.thread_cpu - started
      end
      @turns = 10_000 * WORK_NS / times.sort[times.size / 2]
    end

    def self.call(_)
      compute(@turns)
      [200, HEADERS.dup, [BODY]]
    end
  end

  # What stands before the application: nothing, or rperf's middleware.
  class Front
    attr_writer :middleware

    def call(environment) = (@middleware || App).call(environment)
  end

  # What all web servers have.
  class Server
    def initialize(front)
      @front = front
    end

    def middleware=(wanted)
      require "rperf/rack" if wanted
      @front.middleware = (Rperf::RackMiddleware.new(App) if wanted)
    end

    def stop = nil
  end

  # Threads that accept connections and answer the requests that come on each.
  class Sockets < Server
    def initialize(front)
      super
      @server = TCPServer.new("127.0.0.1", 0)
    end

    def port = @server.addr[1]

    def start = Thread.new { loop { Thread.new(@server.accept) { |socket| serve(socket) } } }

    private

    def serve(socket)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      while (line = socket.gets("\r\n"))
        _, path = line.split
        nil while socket.gets("\r\n") != "\r\n"
        status, headers, body = @front.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path })
        head = headers.map { |name, value| "#{name}: #{value}\r\n" }.join
        socket.write("HTTP/1.1 #{status} OK\r\n#{head}\r\n#{body.join}")
      end
    end
  end

  # Puma, with a pool of threads, and without processes or a reactor: a thread waits for each connection.
  class PumaServer < Server
    def initialize(front)
      super
      require "puma"
      require "puma/server"
      @server = Puma::Server.new(front, nil, min_threads: THREADS, max_threads: THREADS, queue_requests: false)
      @server.add_tcp_listener("127.0.0.1", 0)
    end

    def port = @server.connected_ports.first

    def start = @server.run
  end

  SERVERS = { "sockets" => Sockets, "puma" => PumaServer, "sidekiq" => Jobs }.freeze

  # The commands.
  class Commands
    def initialize(server)
      @server = server
    end

    def start(name, hertz)
      profiler, with = name.split(" with ")
      case with
      when "middleware"
        @server.middleware = true
      when "port"
        require "rperf"
        Rperf.listen
        @has_port = true
      end
      @profiler = Bench::Profilers.fetch(profiler)
      require @profiler.library if @profiler.library
      GC.start
      @profiler.start.call(Integer(hertz))
      {}
    end

    def measure
      @threads = Bench::OwnThreads.now
      @cpu = Bench::Clock.process_cpu
      {}
    end

    def stop
      cpu_ns = Bench::Clock.process_cpu - @cpu
      own_ns = Bench::OwnThreads.since(@threads).cpu_ns
      @profiler.stop.call
      @server.middleware = false
      Rperf.const_get(:Port).close if @has_port
      @has_port = false
      { cpu_ns:, own_ns: }
    end

    def serve(input, output)
      input.each_line { |line| output.puts(JSON.generate(public_send(*line.chomp.split("\t")))) }
    end
  end
end

$stdout.sync = true
front = Web::Front.new
Web::App.calibrate
server = Web::SERVERS.fetch(ARGV.fetch(0)).new(front)
server.start
puts server.port
begin
  Web::Commands.new(server).serve($stdin, $stdout)
ensure
  server.stop
end
exit!(0)
