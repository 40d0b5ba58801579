# frozen_string_literal: true

# Readers of the newspaper: load.rb [SECONDS [URL]]. Without a URL, as http://127.0.0.1:9292, the newspaper is in this
# process, which prints its PID first. It ends by telling how many requests there were.

require "net/http"

# Asks for pages, each reader in a thread of its own.
class Load
  READERS = 4
  # Between two requests of a reader, in the mean, in s.
  PAUSE = 0.05
  WORDS = %w[harbour rain election bridge school market].freeze
  # One request in so many is for the statistics, which take long.
  STATISTICS = 200

  def initialize(seconds)
    @ends = now + seconds
  end

  # @yield returns what answers a path
  # @return [Integer] how many requests there were
  def run
    threads = Array.new(READERS) do |number|
      Thread.new do
        Thread.current.name = "reader #{number}"
        ask(yield, Random.new(number))
      end
    end
    threads.sum(&:value)
  end

  private

  def ask(pages, random)
    count = 0
    while now < @ends
      pages.call(path(random))
      count += 1
      sleep(PAUSE * 2 * random.rand)
    end
    count
  end

  def path(random)
    reader = "reader=#{random.rand(1_000_000)}"
    return "/statistics" if random.rand(STATISTICS).zero?

    case random.rand(10)
    when 0..2 then "/?#{reader}"
    when 3..4 then "/articles/#{random.rand(50)}?#{reader}"
    when 5..6 then "/search?q=#{WORDS.sample(random:)}"
    when 7..8 then "/letters?#{reader}"
    else "/archive/#{1900 + random.rand(100)}"
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

seconds, url = ARGV
load = Load.new(Float(seconds || 60))
count = if url
          load.run do
            address = URI(url)
            http = Net::HTTP.start(address.host, address.port)
            ->(path) { http.get(path) }
          end
        else
          require_relative "news"
          app = News.app
          warn "the newspaper is process #{Process.pid}"
          load.run do
            lambda do |path|
              path, query = path.split("?")
              app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path,
                         "QUERY_STRING" => query.to_s })
            end
          end
        end
puts "#{count} requests"
