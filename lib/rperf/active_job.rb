# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "middleware/work"

module Rperf
  # Labels the samples of each Active Job with `job`, the name of its class, whatever
  # the queue adapter; in a session that was started with `defer: true` it profiles jobs.
  # It starts no session itself. With `Rperf.start(mode: :account)`, each job has an {Account}.
  #
  # @example
  #   require "rperf/active_job"
  #
  #   class ApplicationJob < ActiveJob::Base
  #     include Rperf::ActiveJobMiddleware
  #   end
  module ActiveJobMiddleware
    def self.included(base)
      super
      base.around_perform do |job, perform|
        next perform.call unless Work.profiled? || Work.accounted?

        labels = { job: job.class.to_s }
        next Work.run(labels) { perform.call } unless Work.accounted?

        Work.account do |account|
          account.name = labels[:job]
          Work.run(labels) { perform.call }
        end
      end
    end
  end
end
