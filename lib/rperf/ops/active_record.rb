# frozen_string_literal: true

module Rperf
  module Ops
    # Statements of Active Record: their text, of which the values are left out. Those that ask what tables look like,
    # and those answered by the query cache, aren't ops.
    module ActiveRecord
      KIND = "sql"
      SCHEMA = "SCHEMA"
      private_constant :KIND, :SCHEMA

      class << self
        def find = Notifications.find

        def install(notifications)
          notifications.subscribe("sql.active_record", Notifications::Subscriber.new(KIND, self))
        end

        # Whoever sends such an event says before it begins whether the answer comes from the cache.
        def of(_event, values)
          return unless values.instance_of?(Hash) && !values[:cached]

          text = values[:sql]
          text if text.is_a?(String) && values[:name] != SCHEMA
        end
      end
    end
  end
end
