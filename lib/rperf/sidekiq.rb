# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "middleware/work"

module Rperf
  # Sidekiq server middleware that labels the samples of each job with `job`, the name
  # of its class (that of the Active Job, where Sidekiq runs one); in a session that was
  # started with `defer: true` it profiles jobs. It starts no session itself.
  #
  # @example
  #   require "rperf/sidekiq"
  #
  #   Sidekiq.configure_server do |config|
  #     config.server_middleware do |chain|
  #       chain.add Rperf::SidekiqMiddleware
  #     end
  #   end
  class SidekiqMiddleware
    # @param job [Hash] the job as it is in Redis
    # @return the job's value
    def call(_instance, job, _queue, &)
      return yield unless Work.profiled?

      Work.run({ job: (job["wrapped"] || job["class"]).to_s }, &)
    end
  end
end
