# frozen_string_literal: true

module Rperf
  module Ops
    # Waits for a connection of a pool, all of which others have. A connection that is free at once is no op.
    module Pools
      KIND = "pool"

      # Pools of Active Record, by the name that their database has in the configuration.
      module ActiveRecord
        NAME = "ActiveRecord"
        private_constant :NAME

        # Wraps the method in which a pool's queue waits. The queue's lock is the pool.
        module Waiting
          private

          def wait_poll(*)
            return __rperf_wait_poll(*) unless Native.main_ractor? && Native.ops?

            Named.call(KIND, ActiveRecord.name_of(@lock)) { __rperf_wait_poll(*) }
          end
        end
        private_constant :Waiting

        class << self
          def find
            found = Loaded.module(:ActiveRecord, :ConnectionAdapters, :ConnectionPool, :Queue)
            found if found.is_a?(Class) && found.private_method_defined?(:wait_poll)
          end

          def install(queue) = Wrapped.install(queue, Waiting)

          def name_of(pool)
            database = Guard.attempt("of pools have no names") { pool.db_config.name if pool.respond_to?(:db_config) }
            database.is_a?(String) ? "#{NAME} #{database}" : NAME
          end
        end
      end

      # Pools of the gem connection_pool, which have no names.
      module ConnectionPool
        NAME = "ConnectionPool"
        private_constant :NAME

        # Wraps the method that takes a connection, and may wait for one. Its arguments differ by version.
        module Waiting
          def pop(*, **, &)
            return __rperf_pop(*, **, &) unless Native.main_ractor? && Native.ops? && ConnectionPool.all_taken?(self)

            Named.call(KIND, NAME) { __rperf_pop(*, **, &) }
          end
        end
        private_constant :Waiting

        class << self
          def find
            found = Loaded.module(:ConnectionPool, :TimedStack)
            found if found.is_a?(Class) && found.method_defined?(:pop) && found.method_defined?(:empty?)
          end

          def install(stack) = Wrapped.install(stack, Waiting)

          def all_taken?(stack) = Guard.attempt("of pools are missing") { stack.empty? }
        end
      end
    end
  end
end
