# frozen_string_literal: true

# Active Jobs; and with Sidekiq, its own jobs.

require_relative "tasks"
require "active_job"
require "rperf/active_job"

ActiveJob::Base.logger = Logger.new(nil)

class ApplicationJob < ActiveJob::Base
  include Rperf::ActiveJobMiddleware

  around_perform { |job, perform| Tasks.measure(-> { job.class.name }) { perform.call } }
end

class ComputeJob < ApplicationJob
  def perform = Tasks.compute
end

# Of a module, and a class between it and ApplicationJob.
module Remote
  class BaseJob < ApplicationJob
  end

  class FetchJob < BaseJob
    def perform(_argument, times: 1) = times.times { Tasks.fetch }
  end
end

class FailingJob < ApplicationJob
  discard_on RuntimeError

  def perform = Tasks.fail
end
