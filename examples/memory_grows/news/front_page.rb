# frozen_string_literal: true

class News
  # The first page, as each reader has arranged it. Those of the latest readers are kept.
  class FrontPage
    KEPT = 200

    def initialize
      @pages = {}
      @lock = Mutex.new
    end

    def page(reader)
      @lock.synchronize do
        page = @pages.delete(reader) || made(reader)
        @pages.shift if @pages.size >= KEPT
        @pages[reader] = page
        page.join
      end
    end

    private

    def made(reader)
      Array.new(30) { |hour| "<li>#{hour}:00: what was new then, for reader #{reader}, and for others</li>" }
    end
  end
end
