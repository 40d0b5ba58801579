# frozen_string_literal: true

# A server with an endpoint that asks for each item of an order, and waits long for another server now and then; and
# one without ops. Writes ops.pb.gz, for requests.test.ts.
require "rperf/rack"

# An app.
class Shop
  def items = 6.times { |id| Rperf.op("SELECT * FROM items WHERE id = #{id}", kind: :sql) { sleep(0.0003) } }
  def rates = Rperf.op("GET rates.example.com", kind: :http) { sleep(0.02) }
end

server = Rperf::RackMiddleware.new(lambda { |env|
  shop = Shop.new
  if env["PATH_INFO"] == "/orders"
    shop.items
    shop.rates if env["number"] % 50 == 25
  end
  sleep(0.0005)
  [200, {}, []]
})

Rperf.start(mode: :wall, measure: %i[requests ops], output: "ops.pb.gz") do
  %w[/orders /about].each do |path|
    1_000.times do |number|
      server.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "number" => number })
    end
  end
end
