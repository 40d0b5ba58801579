# frozen_string_literal: true

require "erb"
require "json"

# A small Rack application: three pages like those of a shop, each with another
# mixture of Ruby, C and waiting.
module Shop
  TAGS = %w[new blue wood].freeze
  PRODUCTS = Array.new(200) do |number|
    { id: number, name: "Product #{number}", price: (number * 7919) % 10_000, tags: TAGS.first(number % 4) }
  end.freeze

  PAGE = ERB.new(<<~HTML, trim_mode: "-")
    <!DOCTYPE html>
    <title><%= ERB::Util.html_escape(title) %></title>
    <table>
    <%- products.each do |product| -%>
      <tr><td><%= product[:id] %></td><td><%= ERB::Util.html_escape(product[:name]) %></td>
      <td><%= format("%.2f", product[:price] / 100.0) %></td></tr>
    <%- end -%>
    </table>
  HTML

  Rendered = Module.new.extend(PAGE.def_module("render(title, products)"))
  EVALUATES = ENV["SHOP_EVALUATES"] == "1"

  # How often it has searched, for whoever sets SHOP_COUNTS=1.
  SEARCHES = { count: 0 } # rubocop:disable Style/MutableConstant -- it counts
  COUNTED = Mutex.new
  COUNTS = ENV["SHOP_COUNTS"] == "1"

  ROUTES = {
    "/api/products" => ->(query) { ["application/json", search(query)] },
    "/orders" => ->(query) { ["application/json", orders(query)] },
    "/products" => ->(query) { ["text/html", page(query)] }
  }.freeze

  # Computes: filters, sorts and writes JSON.
  def self.search(query)
    COUNTED.synchronize { SEARCHES[:count] += 1 } if COUNTS
    limit = 2000 + (query.hash % 5000)
    found = PRODUCTS.select { |product| product[:price] < limit }
    sorted = found.sort_by { |product| [-product[:tags].size, product[:price], product[:name]] }
    JSON.generate(products: sorted, average: sorted.sum { |product| product[:price] }.fdiv(sorted.size + 1))
  end

  # Waits, as for a database.
  def self.orders(query)
    sleep 0.002
    JSON.generate(orders: PRODUCTS.first(20).map { |product| { product: product[:id], query: } })
  end

  # Renders a template: compiled once, as frameworks do, or with SHOP_EVALUATES=1
  # evaluated for each request, which makes new code each time.
  def self.page(query)
    title = "Products #{query}"
    products = PRODUCTS.first(60)
    EVALUATES ? PAGE.result_with_hash(title:, products:) : Rendered.render(title, products)
  end

  def self.call(environment)
    route = ROUTES[environment["PATH_INFO"]]
    return [404, { "content-type" => "text/plain" }, ["not found\n"]] unless route

    type, body = route.call(environment["QUERY_STRING"])
    [200, { "content-type" => type, "content-length" => body.bytesize.to_s }, [body]]
  end
end
