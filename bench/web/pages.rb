# frozen_string_literal: true

require_relative "redis"
require_relative "servers"

module Web
  # Puma with a Sinatra application, whose page asks a Redis of its own eight times and lists what comes. Most of it is
  # the code of libraries.
  class Pages < PumaServer
    LISTS = 8
    ROWS = 20
    TEMPLATE = <<~ERB
      <!DOCTYPE html>
      <title>Orders</title>
      <% @orders.each do |name, rows| %>
      <h2><%= Rack::Utils.escape_html(name) %></h2>
      <table>
      <% rows.each do |row| %>
      <tr><% row.each_value do |value| %><td><%= Rack::Utils.escape_html(value.to_s) %></td><% end %></tr>
      <% end %>
      </table>
      <% end %>
    ERB

    def initialize
      require "json"
      require "redis-client"
      require "sinatra/base"
      @redis = Redis.new
      super(application(filled))
    rescue StandardError
      @redis&.stop
      raise
    end

    def stop = @redis.stop

    private

    def filled
      pool = RedisClient.config(url: @redis.url).new_pool(size: THREADS)
      fill(pool)
      pool
    end

    def fill(redis)
      LISTS.times do |list|
        rows = Array.new(ROWS) { |row| JSON.generate(number: row, article: "Article <#{row}>", price: row * 1.5) }
        redis.call("RPUSH", "orders-#{list}", *rows)
      end
    end

    def application(redis)
      Class.new(Sinatra::Base) do
        set(:environment, :production)
        get("/") do
          @orders = Array.new(LISTS) do |list|
            name = "orders-#{list}"
            [name, redis.call("LRANGE", name, "0", "-1").map { |row| JSON.parse(row) }]
          end
          erb(TEMPLATE)
        end
      end
    end
  end
end
