# frozen_string_literal: true

# A page that computes, and one that waits. That rperf is loaded is all that RPERF_LISTEN needs.

require "rperf/rack"

# Prices, which it works out anew for each question.
class Prices
  def total(order) = (1..200_000).sum { |part| (order * part) % 97 }
end

use Rperf::RackMiddleware

run(lambda do |env|
  body = case env["PATH_INFO"]
         when %r{\A/orders/(\d+)\z} then Prices.new.total(Integer(Regexp.last_match(1), 10)).to_s
         when "/search" then sleep(0.05) && "results"
         end
  body ? [200, { "content-type" => "text/plain" }, [body]] : [404, { "content-type" => "text/plain" }, ["no such page"]]
end)
