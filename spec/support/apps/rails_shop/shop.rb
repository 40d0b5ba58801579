# frozen_string_literal: true

# A Rails app with the pages, and the faults, of examples/slow_requests.

require "logger"
require "rails"
require "action_controller"
require "active_job"
$LOAD_PATH.unshift(File.join(__dir__, "gems/tables-1.0.0/lib"))
require "tables_adapter"
require "rperf/rack"
require "rperf/active_job"

class Site < Rails::Application
  config.load_defaults 7.2
  config.root = __dir__
  config.eager_load = false
  config.logger = Logger.new(nil)
  config.secret_key_base = "of the specs"
  config.middleware.use Rperf::RackMiddleware
end
Rails.application.initialize!
ActiveJob::Base.logger = nil

WORDS = %w[blue cedar glass iron linen paper silk wool].freeze
PRODUCTS = Array.new(5_000) do |id|
  { "id" => id, "name" => "#{WORDS[id % WORDS.size]} bowl", "shelf" => id % 250, "description" => "Bowl #{id}" }
end
TablesAdapter.add("products", PRODUCTS)
TablesAdapter.add("orders", Array.new(1_000) { |id| { "id" => id, "customer" => "C#{id}" } })
# One order in thirty is that of a firm.
TablesAdapter.add("order_lines", Array.new(1_000) do |order|
  Array.new((order % 30).zero? ? 100 : 3 + (order % 5)) do |line|
    { "id" => (order * 1_000) + line, "order_id" => order, "product_id" => ((order * 31) + (line * 17)) % 5_000 }
  end
end.flatten)
ActiveRecord::Base.establish_connection(adapter: "tables", pool: 20)

class Product < ActiveRecord::Base; end

class Order < ActiveRecord::Base
  has_many :lines, class_name: "OrderLine"
end

class OrderLine < ActiveRecord::Base
  belongs_to :product
end

require_relative "../application_controller"

class HomeController < ApplicationController
  def index = answer(Product.where(shelf: rand(250)).map(&:name).join("\n"))
end

class OrdersController < ApplicationController
  def show = answer(Order.find(params[:id]).lines.map { |line| text(line) }.join("\n"))

  private

  def text(line) = line.product.name
end

class ReportsController < ApplicationController
  VISITS = Array.new(2_000) { |number| "C#{number % 997},#{(number * 13) % 5_000},7" }.join("\n").freeze
  private_constant :VISITS
  # What is kept for next time.
  class_attribute :kept, default: {}

  def show
    found = kept[params[:id]] = rows
    counts = found.group_by { |row| row[1] }.transform_values(&:size)
    answer(counts.max_by(10) { |_, count| count }.join("\n"))
  end

  private

  def rows = VISITS.lines.map { |line| line.chomp.split(",") }
end

class SearchController < ApplicationController
  def index
    word = params[:q]
    answer((WORDS.include?(word) ? by_number(word) : by_description(word)).map(&:name).join("\n"))
  end

  private

  def by_number(word) = Product.where(shelf: WORDS.index(word)).limit(3).to_a

  def by_description(word) = Product.where("description LIKE '%#{word}%'").limit(3).to_a
end

# All products for other shops, each once.
class ExportJob < ActiveJob::Base
  include Rperf::ActiveJobMiddleware

  def perform = rows.join("\n")

  private

  def rows
    PRODUCTS.each_with_object([]) do |product, rows|
      row = product["description"]
      rows << row unless rows.include?(row)
    end
  end
end

Rails.application.routes.draw do
  root to: "home#index"
  resources :orders, only: :show
  resources :reports, only: :show
  get "/search", to: "search#index"
end
