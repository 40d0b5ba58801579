# frozen_string_literal: true

# What is left of each article.
module Stock
  def self.count(number)
    left = article = 0
    while article < 3_000
      left += (number ^ article) & 3
      article += 1
    end
    left
  end
end
