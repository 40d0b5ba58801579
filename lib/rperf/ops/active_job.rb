# frozen_string_literal: true

module Rperf
  module Ops
    # Active Jobs that are enqueued, and those that are performed where no middleware of rperf's makes them jobs of the
    # profile: by their class.
    module ActiveJob
      ENQUEUE = "enqueue"
      PERFORM = "perform"
      ENQUEUE_ALL = "enqueue_all.active_job"
      EVENTS = ["enqueue.active_job", "enqueue_at.active_job", ENQUEUE_ALL].freeze
      # What `perform_all_later` enqueues at once.
      SEVERAL = "(several classes)"
      private_constant :ENQUEUE, :PERFORM, :ENQUEUE_ALL, :EVENTS, :SEVERAL

      # Wraps the method that performs a job.
      module Performing
        def perform_now(*, **, &)
          return __rperf_perform_now(*, **, &) unless Native.main_ractor? && Native.ops?

          name = Guard.attempt("of jobs are missing") { ActiveJob.performed(self) }
          return __rperf_perform_now(*, **, &) unless name

          Named.call(PERFORM, name) { __rperf_perform_now(*, **, &) }
        end
      end
      private_constant :Performing

      class << self
        def find
          found = Loaded.module(:ActiveJob, :Base)
          found if found.is_a?(Class) && found.method_defined?(:perform_now) && Notifications.find
        end

        def install(base)
          Wrapped.install(base, Performing)
          subscriber = Notifications::Subscriber.new(ENQUEUE, self)
          EVENTS.each { |event| Notifications.find.subscribe(event, subscriber) }
        end

        # The class of a job that is being enqueued.
        def of(event, values)
          return unless values.instance_of?(Hash)

          event == ENQUEUE_ALL ? of_all(values[:jobs]) : JobClass.of(values[:job])
        end

        # The class of a job that is being performed, unless it is a job of the profile.
        def performed(job)
          name = JobClass.of(job)
          name unless own_middleware?(job) || name == label
        end

        private

        def of_all(jobs)
          return unless jobs.instance_of?(Array)

          names = jobs.map { |job| JobClass.of(job) }.uniq
          names.size == 1 ? names.first : SEVERAL
        end

        # The middleware runs inside of this op. The job's own methods aren't asked.
        def own_middleware?(job)
          middleware = Loaded.module(:Rperf, :ActiveJobMiddleware)
          case job
          when middleware then true
          else false
          end
        end

        # Sidekiq's middleware runs around it.
        def label = Native.labels&.fetch(:job, nil)
      end
    end
  end
end
