# frozen_string_literal: true

require "socket"

# Web servers on a free port of this machine.
module Web
  # As many as there are connections at most.
  THREADS = 16

  # What stands before an application: nothing, or rperf's middleware.
  class Front
    def initialize(application)
      @application = @answers = application
    end

    def middleware=(wanted)
      require "rperf/rack" if wanted
      @answers = wanted ? Rperf::RackMiddleware.new(@application) : @application
    end

    def call(environment) = @answers.call(environment)
  end

  # What all web servers have.
  class Server
    def initialize(application)
      @front = Front.new(application)
    end

    def middleware=(wanted)
      @front.middleware = wanted
    end

    def stop = nil
  end

  # Threads that accept connections and answer the requests that come on each.
  class Sockets < Server
    def initialize(application)
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
    def initialize(application)
      super
      require "puma"
      require "puma/server"
      @server = Puma::Server.new(@front, nil, min_threads: THREADS, max_threads: THREADS, queue_requests: false)
      @server.add_tcp_listener("127.0.0.1", 0)
    end

    def port = @server.connected_ports.first

    def start = @server.run
  end
end
