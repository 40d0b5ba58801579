# frozen_string_literal: true

class Shop
  # Products by a word.
  class Search
    LIMIT = 3

    def initialize(database)
      @database = database
    end

    def page(word)
      found = by_term(word)
      found = by_description(word) if found.empty?
      "<ul>#{found.map { |product| "<li>#{product[:name]}</li>" }.join}</ul>"
    end

    private

    def by_term(word)
      terms = @database.query("SELECT * FROM terms WHERE word = ?", word).first(LIMIT)
      terms.flat_map { |term| @database.query("SELECT * FROM products WHERE id = ?", term[:product_id]) }
    end

    def by_description(word)
      @database.query("SELECT * FROM products WHERE description LIKE ?", "%#{word}%").first(LIMIT)
    end
  end
end
