# frozen_string_literal: true

# An app under Rperf::Viewer, for middleware.test.ts: a server of a few lines, so that no gem is needed. It prints its
# port, and ends when its input does.

require "socket"
require "rperf/viewer"
require "rperf/rack"

# Two methods that use the CPU, and call nothing.
module Shop
  class << self
    def price
      number = 0
      number += 1 while number < 8_000_000
    end

    def ship
      number = 0
      number += 1 while number < 8_000_000
    end
  end
end

shop = lambda do |env|
  task = env["PATH_INFO"][%r{\A/(price|ship)\z}, 1]
  Shop.public_send(task) if task
  [task ? 200 : 404, { "content-type" => "text/plain" }, ["done\n"]]
end
app = Rperf::Viewer.new(Rperf::RackMiddleware.new(shop), max_snapshots: 3)

def read_request(socket)
  method, target = socket.gets.split
  path, query = target.split("?", 2)
  env = { "REQUEST_METHOD" => method, "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => query.to_s }
  while (line = socket.gets.chomp) != ""
    name, value = line.split(": ", 2)
    env["HTTP_#{name.upcase.tr("-", "_")}"] = value
  end
  env
end

def write_response(socket, (status, headers, body))
  lines = headers.map { |name, value| "#{name}: #{value}\r\n" }
  socket.write("HTTP/1.1 #{status} -\r\n#{lines.join}connection: close\r\n\r\n", *body)
end

Rperf.start(mode: :wall)
server = TCPServer.new("127.0.0.1", 0)
Thread.new do
  loop do
    Thread.new(server.accept) do |socket|
      write_response(socket, app.call(read_request(socket)))
    rescue SystemCallError, NoMethodError
      nil # A browser opens connections that it doesn't use.
    ensure
      socket.close
    end
  end
end
$stdout.write("#{server.local_address.ip_port}\n")
$stdout.flush
$stdin.read
