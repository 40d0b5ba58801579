# frozen_string_literal: true

# Customers for the shop: load.rb [SECONDS [URL]]. Without a URL, as http://127.0.0.1:9292, the shop is in this process.
# It ends by telling how many requests there were.

require "net/http"

# Asks for pages, each customer in a thread of its own.
class Load
  CUSTOMERS = 10
  # Between two requests of a customer, in the mean, in s.
  PAUSE = 0.04
  WORDS = %w[blue cedar glass iron linen paper silk wool].freeze
  UNKNOWN = "pewter"

  def initialize(seconds)
    @ends = now + seconds
  end

  # @yield [customer] returns what answers a path
  # @return [Integer] how many requests there were
  def run
    threads = Array.new(CUSTOMERS) do |number|
      Thread.new { ask(yield, Random.new(number)) }
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
    case random.rand(6)
    when 0, 1 then "/"
    when 2 then "/orders/#{random.rand(1_000)}"
    when 3 then "/reports/#{random.rand(12)}"
    else "/search?q=#{random.rand(100).zero? ? UNKNOWN : WORDS.sample(random:)}"
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
          require_relative "shop"
          app = Shop.app
          load.run do
            lambda do |path|
              path, query = path.split("?")
              app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path,
                         "QUERY_STRING" => query.to_s })
            end
          end
        end
puts "#{count} requests"
