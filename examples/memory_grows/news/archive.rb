# frozen_string_literal: true

require "zlib"

class News
  # Old editions, compressed.
  class Archive
    # A download that may be continued.
    Download = Struct.new(:year, :stream)

    def initialize
      @downloads = []
    end

    def page(year)
      stream = Zlib::Deflate.new(Zlib::BEST_COMPRESSION)
      @downloads << Download.new(year, stream)
      stream.deflate(edition(year), Zlib::SYNC_FLUSH)
    end

    private

    def edition(year) = Array.new(50) { |n| "#{year}, page #{n}: all that was new in that year" }.join("\n")
  end
end
