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
        next perform.call unless Work.wanted?

        name = job.class.to_s
        next Work.account_of_job(name, perform) if Work.accounted?

        Work.run({ job: name }) { perform.call }
      end
    end
  end
end
