# frozen_string_literal: true

# A small Rack app whose samples carry the endpoint, for any Rack server:
#
#   bin/env bin/rperf record -m wall -o web.pb.gz rackup examples/config.ru
#
# Ask it for some pages, such as http://127.0.0.1:9292/orders/17 and /search, and stop it with
# Ctrl-C. What to look for: go tool pprof -tagroot=endpoint web.pb.gz shows "GET /orders/:id",
# which computes, and "GET /search", which waits. Both call the same method for their page.

require "rperf/rack"

use Rperf::RackMiddleware

def page(text) = Array.new(2000) { |line| "<p>#{text} #{line}</p>" }.join

def price(order)
  (1..300_000).sum { |part| (order * part) % 97 }
end

run(lambda do |env|
  body = case env["PATH_INFO"]
         when %r{\A/orders/(\d+)\z}
           page("#{price(Integer(Regexp.last_match(1), 10))} for order")
         when "/search"
           sleep 0.05
           page("result")
         end
  body ? [200, { "content-type" => "text/html" }, [body]] : [404, { "content-type" => "text/plain" }, ["no such page"]]
end)
