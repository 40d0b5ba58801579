# frozen_string_literal: true

class News
  # Articles, with their paragraphs in the order that a reader wants.
  module Articles
    PAGES = Hash.new { |pages, (article, reader)| pages[[article, reader]] = paragraphs(article, reader) }
    private_constant :PAGES

    module_function

    def page(article, reader) = PAGES[[article, reader]].join

    def paragraphs(article, reader)
      Array.new(60) { |n| "<p>Paragraph #{n} of article #{article}, with some words that reader #{reader} likes.</p>" }
    end
  end
end
