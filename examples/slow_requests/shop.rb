# frozen_string_literal: true

# A small shop, as a Rack app that needs no gems: see README.md. It runs jobs in a thread of its own.

$LOAD_PATH.unshift(File.join(__dir__, "gems/teeny-1.0.0/lib"))
require "teeny"
require "rperf/rack"
require_relative "shop/data"
require_relative "shop/home"
require_relative "shop/jobs"
require_relative "shop/orders"
require_relative "shop/reports"
require_relative "shop/search"

# Its pages by path.
class Shop
  HEADERS = { "content-type" => "text/html" }.freeze

  # @return [#call] the app with rperf's middleware
  def self.app = Rperf::RackMiddleware.new(new)

  def initialize
    database = Data.database
    @home = Home.new(database)
    @orders = Orders.new(database)
    @reports = Reports.new(Data.visits)
    @search = Search.new(database)
    Jobs.start(database)
  end

  def call(env)
    body = case env["PATH_INFO"]
           when "/" then @home.page
           when %r{\A/orders/(\d+)\z} then @orders.page(number(Regexp.last_match(1)))
           when %r{\A/reports/(\d+)\z} then @reports.page(number(Regexp.last_match(1)))
           when "/search" then @search.page(env["QUERY_STRING"].delete_prefix("q="))
           end
    body ? [200, HEADERS.dup, [body]] : [404, HEADERS.dup, ["no such page"]]
  end

  private

  def number(text) = Integer(text, 10)
end
