# frozen_string_literal: true

module Rperf
  module Ops
    # Operations of ActiveSupport::Cache: which one, and of which class of store; never the keys.
    module Caches
      KIND = "cache"
      # Those that ask the store. What `fetch` runs for a value that isn't there is the program's own code.
      OPERATIONS = %w[read read_multi write write_multi delete delete_multi delete_matched exist? increment decrement]
                   .to_h { |it| ["cache_#{it}.active_support".freeze, it.freeze] }.freeze
      private_constant :KIND, :OPERATIONS

      class << self
        def find = Notifications.find

        def install(notifications)
          subscriber = Notifications::Subscriber.new(KIND, self)
          OPERATIONS.each_key { |event| notifications.subscribe(event, subscriber) }
        end

        def of(event, values)
          store = values[:store] if values.instance_of?(Hash)
          "#{OPERATIONS[event]} #{store}" if store.is_a?(String)
        end
      end
    end
  end
end
