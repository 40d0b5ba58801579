# frozen_string_literal: true

class Shop
  # The first page: a shelf of products.
  class Home
    def initialize(database)
      @database = database
      @shelf = 0
    end

    def page
      @shelf = (@shelf + 1) % 250
      products = @database.query("SELECT * FROM products WHERE shelf = ?", @shelf)
      "<ul>#{products.map { |product| item(product) }.join}</ul>"
    end

    private

    def item(product) = "<li>#{product[:name]}: #{product[:price]}</li>"
  end
end
