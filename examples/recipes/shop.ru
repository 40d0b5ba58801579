# frozen_string_literal: true

# A small shop for any Rack server: `puma shop.ru`. One page computes, the other one waits.

require "sinatra/base"
require "rperf/rack"

# Prices, which it works out anew for each question.
class Prices
  def total(order) = (1..200_000).sum { |part| (order * part) % 97 }
end

# Stands for a database that takes its time.
class Database
  def search(_word)
    sleep 0.05
    Array.new(50) { |row| "result #{row}" }
  end
end

# Two pages.
class Shop < Sinatra::Base
  get("/orders/:id") { "order #{params["id"]}: #{Prices.new.total(Integer(params["id"]))}" }
  get("/search") { Database.new.search(params["q"]).join("\n") }
end

use Rperf::RackMiddleware
run Shop
