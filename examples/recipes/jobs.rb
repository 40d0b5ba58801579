# frozen_string_literal: true

# Jobs for Sidekiq: `sidekiq -r ./jobs.rb`, with Redis. `ruby jobs.rb` puts some into the queue.

require "digest"
require "sidekiq"
require "rperf/sidekiq"

Sidekiq.configure_server do |config|
  config.server_middleware { |chain| chain.add Rperf::SidekiqMiddleware }
end

# Waits for a service.
class SendEmailJob
  include Sidekiq::Job

  def perform(_user) = sleep(0.05)
end

# Computes.
class ThumbnailJob
  include Sidekiq::Job

  def perform(size) = (1..size).each { |row| Digest::SHA256.hexdigest("row #{row}") }
end

if $PROGRAM_NAME == __FILE__
  1_000.times do |number|
    SendEmailJob.perform_async(number)
    ThumbnailJob.perform_async(20_000) if (number % 4).zero?
  end
end
