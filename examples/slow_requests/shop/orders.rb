# frozen_string_literal: true

class Shop
  # The page of an order.
  class Orders
    def initialize(database)
      @database = database
    end

    def page(id)
      order, = @database.query("SELECT * FROM orders WHERE id = ?", id)
      return "<p>no such order</p>" unless order

      "<h1>Order of #{order[:customer]}</h1><p>#{lines(id).join("<br>")}</p>"
    end

    private

    def lines(id)
      @database.query("SELECT * FROM order_lines WHERE order_id = ?", id).map { |line| text(line) }
    end

    def text(line)
      product, = @database.query("SELECT * FROM products WHERE id = ?", line[:product_id])
      "#{product[:name]}: #{product[:price]}"
    end
  end
end
