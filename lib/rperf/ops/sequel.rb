# frozen_string_literal: true

module Rperf
  module Ops
    # Statements of Sequel: their text, of which the values are left out.
    module Sequel
      # Wraps the method that every adapter calls around a statement, whether it is logged or not.
      module Statement
        KIND = "sql"
        private_constant :KIND

        def log_connection_yield(*arguments, &)
          sql = arguments.first
          unless Native.main_ractor? && Native.ops? && sql.is_a?(String)
            return __rperf_log_connection_yield(*arguments, &)
          end

          Named.call(KIND, sql) { __rperf_log_connection_yield(*arguments, &) }
        end
      end
      private_constant :Statement

      class << self
        def find
          found = Loaded.module(:Sequel, :Database)
          found if found.is_a?(Class) && found.method_defined?(:log_connection_yield)
        end

        def install(database) = Wrapped.install(database, Statement)
      end
    end
  end
end
