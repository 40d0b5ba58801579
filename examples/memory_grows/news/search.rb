# frozen_string_literal: true

class News
  # Articles by a word.
  module Search
    # An article that was found.
    Hit = Struct.new(:title, :score)

    module_function

    def page(word)
      hits = found(word)
      recent.push(hits)
      hits.map { |hit| "<li>#{hit.title} (#{hit.score})</li>" }.join
    end

    def found(word)
      Array.new(80) { |n| Hit.new("Article #{n}, in which #{word} stands, or stood in an earlier edition", 80 - n) }
    end

    # What was found before, so that the next search could begin there.
    def recent = Thread.current[:recent_searches] ||= []
  end
end
