# frozen_string_literal: true

# Loaded by Sidekiq and by its client: plain jobs, and Active Jobs that Sidekiq runs.

require "sidekiq"
require_relative "tasks"
require "active_job"
require "rperf/sidekiq"

ActiveJob::Base.logger = Logger.new(nil)
ActiveJob::Base.queue_adapter = :sidekiq

# All of each job.
class Measure
  def call(_instance, job, _queue, &)
    Tasks.measure(-> { job["wrapped"] || job["class"] }, &)
  end
end

Sidekiq.configure_server do |config|
  config.server_middleware do |chain|
    chain.add Rperf::SidekiqMiddleware
    chain.add Measure
  end
end

class ComputeJob
  include Sidekiq::Job

  def perform(_number) = Tasks.compute
end

class FailingJob
  include Sidekiq::Job
  sidekiq_options retry: false

  def perform = Tasks.fail
end

module Mail
  class FetchJob < ActiveJob::Base
    if ENV.key?("BOTH_MIDDLEWARES")
      require "rperf/active_job"
      include Rperf::ActiveJobMiddleware
    end

    def perform(_argument, times: 1) = times.times { Tasks.fetch }
  end
end
