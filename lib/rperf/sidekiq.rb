# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "middleware/work"

module Rperf
  # Sidekiq server middleware that labels the samples of each job with `job`, the name
  # of its class (that of the Active Job, where Sidekiq runs one); in a session that was
  # started with `defer: true` it profiles jobs. It starts no session itself.
  #
  # With `Rperf.start(mode: :account)`, each job has an {Account}, whose times stand in the line of
  # Sidekiq's log that tells of the job's end.
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
    # The times in the log, in ms as Sidekiq's own are in s: key and value.
    LOGGED = { run_ms: :running_ns, gvl_ms: :gvl_wait_ns, blocked_ms: :blocked_ns, gc_ms: :gc_ns,
               cpu_ms: :cpu_ns }.freeze
    private_constant :LOGGED

    # @param job [Hash] the job as it is in Redis
    # @return the job's value
    def call(_instance, job, _queue, &work)
      return yield unless Work.wanted?

      name = (job["wrapped"] || job["class"]).to_s
      return Work.run({ job: name }, &work) unless Work.accounted?

      Work.account_of_job(name, work) do |account|
        Work.attempt(failure: "isn't accounted for in the log") { log(account) }
      end
    end

    private

    # In the context that Sidekiq makes for each job, and lets go of at its end: its logger writes it.
    def log(account)
      return unless defined?(::Sidekiq::Context) && ::Sidekiq::Context.current.any?

      values = account.to_h
      LOGGED.each do |key, value|
        ::Sidekiq::Context.add(key, (values[value] / 1e6).round(1)) if values[value]
      end
      ::Sidekiq::Context.add(:objects, values[:allocated_objects]) if values[:allocated_objects]
      ::Sidekiq::Context.add(:ops, values[:ops].sum { |op| op[:calls] }) if values[:ops]
    end
  end
end
