# frozen_string_literal: true

class Shop
  # What is in the shop's database, the same each time.
  module Data
    PRODUCTS = 5_000
    ORDERS = 1_000
    WORDS = %w[blue brass cedar copper felt glass green iron linen oak paper red silk slate steel wool].freeze
    THINGS = %w[bowl box chair clock cup desk hat lamp plate rug shelf vase].freeze

    module_function

    def database
      tables = { "products" => products, "terms" => terms, "orders" => orders, "order_lines" => order_lines }
      indexes = { "products" => %i[id shelf], "terms" => [:word], "orders" => %i[id], "order_lines" => [:order_id] }
      Teeny::Database.new(tables, indexes)
    end

    def products
      @products ||= Array.new(PRODUCTS) do |id|
        name = "#{WORDS[id % WORDS.size]} #{THINGS[id % THINGS.size]}"
        { id:, name:, price: ((id * 37) % 500) + 1, shelf: id % 250, description: "A #{name}, number #{id}" }
      end
    end

    # The first products for each word.
    def terms
      WORDS.flat_map do |word|
        products.first(200).select { |it| it[:name].start_with?(word) }.map { |it| { word:, product_id: it[:id] } }
      end
    end

    def orders = Array.new(ORDERS) { |id| { id:, customer: "C#{(id * 7919) % 997}" } }

    # One order in thirty is that of a firm.
    def order_lines
      orders.flat_map do |order|
        count = (order[:id] % 30).zero? ? 200 : 3 + (order[:id] % 5)
        Array.new(count) { |line| { order_id: order[:id], product_id: ((order[:id] * 31) + (line * 17)) % PRODUCTS } }
      end
    end

    # The lines of twelve logs: who looked at which product.
    def visits
      Array.new(12) do |month|
        Array.new(2_000) { |number| "C#{number % 997},#{(number * 13) % PRODUCTS},#{month + 1}" }.join("\n").freeze
      end
    end
  end
end
