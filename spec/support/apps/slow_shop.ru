# frozen_string_literal: true

# Three endpoints: one in a hundred requests for /orders sleeps, /cart waits for a job that keeps the GVL now and then,
# nothing is wrong with /about. Each request has its number (/orders/7) as a label, and at the end it is written to the
# file TIMES how long each took by the app's own clock, in ns.

require "json"
require "rperf/rack"
require "rperf/sidekiq"

# An app of which some requests are slow.
class Shop
  TIMES = Queue.new

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def call(env)
    began = self.class.now
    _, page, number = env["PATH_INFO"].split("/")
    Rperf.label(number: "#{page} #{number}") { public_send(page, number.to_i) }
    TIMES << [page, number.to_i, self.class.now - began]
    [200, {}, [page]]
  end

  def orders(number)
    render
    slow_query if number % 100 == 50
  end

  def cart(_number)
    render
    sleep(0.003)
  end

  def about(_number) = render

  def slow_query = sleep(0.4)
  def render = 100.times(&:to_s)
end

# Keeps the GVL.
class Hog
  def spin(seconds)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
  end
end

Thread.new do
  loop do
    sleep(Float(ENV.fetch("HOG_EVERY")))
    Rperf::SidekiqMiddleware.new.call(nil, { "class" => "ExportJob" }, "default") { Hog.new.spin(0.09) }
  end
end
at_exit { File.write(ENV.fetch("TIMES"), Array.new(Shop::TIMES.size) { Shop::TIMES.pop }.to_json) }

use Rperf::RackMiddleware
run Shop.new
