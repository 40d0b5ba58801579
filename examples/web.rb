# frozen_string_literal: true

# A small web application on a plain TCP server, one thread per connection. By
# itself it sends itself some requests and ends; with --serve it stays up.
#
#   bin/rperf stat ruby examples/web.rb
#   bin/rperf record -m wall -o web.pb.gz ruby examples/web.rb --serve 8080
#
# What to look for: most of the threads' time is [GVL blocked], in accept and in
# socket reads, as it should be for a server. Below App#call two pages cost
# something: /report computes (it is on top in cpu mode), /search waits for its
# "database" (it is on top in wall mode only). With --serve, stop it with Ctrl-C:
# the profile is written then.

require "socket"

# Turns a path into a page.
class App
  PRODUCTS = Array.new(400) { |number| { id: number, name: "Product #{number}", price: (number * 37) % 500 } }.freeze

  def call(path)
    case path
    when "/" then [200, "<h1>Shop</h1><a href='/report'>report</a> <a href='/search?q=7'>search</a>"]
    when "/report" then [200, report]
    when %r{\A/search\?q=(\w+)\z} then [200, search(Regexp.last_match(1))]
    else [404, "no such page"]
    end
  end

  private

  def report
    groups = PRODUCTS.group_by { |product| product[:price] / 50 }
    rows = groups.sort.map { |group, products| row(group, products) }
    "<table>#{rows.join}</table>"
  end

  def row(group, products)
    prices = products.map { |product| product[:price] }
    mean = prices.sum.fdiv(prices.size)
    spread = 40.times.sum { prices.sum { |price| (price - mean).abs } } / 40
    format("<tr><td>%<group>d</td><td>%<mean>.2f</td><td>%<spread>.2f</td></tr>", group:, mean:, spread:)
  end

  def search(word)
    query_database(word).map { |product| "<li>#{product[:name]}</li>" }.join
  end

  def query_database(word)
    sleep 0.02
    PRODUCTS.select { |product| product[:name].include?(word) }
  end
end

# Speaks just enough HTTP for a browser.
class Server
  REASONS = { 200 => "OK", 404 => "Not Found" }.freeze

  def initialize(app, port)
    @app = app
    @socket = TCPServer.new("127.0.0.1", port)
  end

  def port = @socket.addr[1]

  def run
    loop { Thread.new(@socket.accept) { |client| serve(client) } }
  rescue IOError
    nil # closed: the end
  end

  def close = @socket.close

  private

  def serve(client)
    path = client.gets.to_s.split[1]
    nil until client.gets.to_s.strip.empty?
    status, body = @app.call(path)
    client.write("HTTP/1.1 #{status} #{REASONS[status]}\r\n" \
                 "Content-Type: text/html\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
  rescue SystemCallError
    nil # the client went away
  ensure
    client.close
  end
end

def request(port, path)
  TCPSocket.open("127.0.0.1", port) do |socket|
    socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    socket.read[/\AHTTP\S+ (\d+)/, 1]
  end
end

def visit(port, times)
  Array.new(times) { |turn| request(port, ["/", "/report", "/search?q=#{turn % 10}", "/missing"][turn % 4]) }
end

if ARGV.first == "--serve"
  server = Server.new(App.new, Integer(ARGV.fetch(1, "8080")))
  puts "http://127.0.0.1:#{server.port}/ (Ctrl-C ends it)"
  begin
    server.run
  rescue Interrupt
    puts "bye"
  end
else
  server = Server.new(App.new, 0)
  serving = Thread.new { server.run }
  answers = Array.new(4) { Thread.new { visit(server.port, 100) } }.flat_map(&:value)
  server.close
  serving.join
  puts answers.tally.sort.map { |status, count| "#{count} x #{status}" }.join(", ")
end
