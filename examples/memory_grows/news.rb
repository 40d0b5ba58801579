# frozen_string_literal: true

# A small newspaper, as a Rack app that needs no gems: see README.md.

require "rperf/rack"
require_relative "news/archive"
require_relative "news/articles"
require_relative "news/front_page"
require_relative "news/letters"
require_relative "news/search"
require_relative "news/statistics"

# Its pages by path.
class News
  HEADERS = { "content-type" => "text/html" }.freeze

  # @return [#call] the app with rperf's middleware
  def self.app = Rperf::RackMiddleware.new(new)

  def initialize
    @front_page = FrontPage.new
    @archive = Archive.new
    @statistics = Statistics.new
  end

  def call(env)
    body = page(env["PATH_INFO"], env["QUERY_STRING"].to_s.split("=").last)
    body ? [200, HEADERS.dup, [body]] : [404, HEADERS.dup, ["no such page"]]
  end

  private

  # The word is the one that a query has: `reader=17`, `q=rain`.
  def page(path, word)
    case path
    when "/" then @front_page.page(word)
    when %r{\A/articles/(\d+)\z} then Articles.page(Regexp.last_match(1), word)
    when "/search" then Search.page(word)
    when "/letters" then Letters.page(word)
    when %r{\A/archive/(\d+)\z} then @archive.page(Regexp.last_match(1))
    when "/statistics" then @statistics.page
    end
  end
end
