# frozen_string_literal: true

# Reads a feed, and keeps more and more of it: Feed#seen? remembers whole entries, where their
# numbers would do.

# Entries, each of which is shown once.
class Feed
  def initialize
    @seen = {}
  end

  def read(number)
    entry = parse("#{number % 30_000};title #{number};#{"text " * 20}")
    show(entry) unless seen?(entry)
  end

  attr_reader :seen

  private

  def parse(line)
    id, title, text = line.split(";")
    { id:, title:, words: text.split }
  end

  def seen?(entry) = @seen.key?(entry[:id]) || !@seen.store(entry[:id], entry)

  def show(entry) = entry[:title].upcase
end

FEED = Feed.new
40_000.times { |number| FEED.read(number) }
puts "#{FEED.seen.size} entries seen"
