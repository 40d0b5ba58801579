# frozen_string_literal: true

module Rperf
  module Ops
    # Jobs that Sidekiq's client pushes, one or many at once: by their class. Those of Active Job have an op already.
    module Sidekiq
      # Wraps the methods through which all jobs go.
      module Pushing
        KIND = "enqueue"
        private_constant :KIND

        def push(*arguments, &)
          return __rperf_push(*arguments, &) unless (name = Sidekiq.pushed(arguments.first))

          Named.call(KIND, name) { __rperf_push(*arguments, &) }
        end

        def push_bulk(*arguments, &)
          return __rperf_push_bulk(*arguments, &) unless (name = Sidekiq.pushed(arguments.first))

          Named.call(KIND, name) { __rperf_push_bulk(*arguments, &) }
        end
      end
      private_constant :Pushing

      class << self
        def find
          found = Loaded.module(:Sidekiq, :Client)
          found if found.is_a?(Class) && found.method_defined?(:push) && found.method_defined?(:push_bulk)
        end

        def install(client) = Wrapped.install(client, Pushing)

        # The name of a job that is being pushed, if ops are measured.
        def pushed(job) = Native.main_ractor? && Native.ops? ? name_of(job) : nil

        private

        def name_of(job)
          Guard.attempt("of jobs are missing") do
            case job
            when Hash then name_of_class(job["class"]) unless job["wrapped"]
            end
          end
        end

        def name_of_class(job_class)
          case job_class
          when String then job_class
          when Module then JobClass.name_of(job_class)
          end
        end
      end
    end
  end
end
