# frozen_string_literal: true

module Rperf
  module Ops
    # Commands of redis-client, and so of the gem redis from 5.0 and of Sidekiq from 7.0: which one, never its keys.
    # Those that are sent together, as in a transaction, are one `PIPELINE`.
    module RedisClient
      KIND = "redis"
      CONNECT = "CONNECT"
      PIPELINE = "PIPELINE"
      private_constant :KIND, :CONNECT, :PIPELINE

      # What redis-client calls middleware. Whatever it passes is passed on: its versions differ.
      module Middleware
        def call(command, *)
          return super unless Native.main_ractor? && Native.ops? && (name = RedisClient.name_of(command))

          RedisClient.op(name) { super }
        end

        def call_pipelined(*)
          Native.main_ractor? && Native.ops? ? RedisClient.op(PIPELINE) { super } : super
        end

        def connect(*)
          Native.main_ractor? && Native.ops? ? RedisClient.op(CONNECT) { super } : super
        end
      end
      private_constant :Middleware

      class << self
        def find
          found = Loaded.module(:RedisClient)
          found if found.respond_to?(:register) && Loaded.module(:RedisClient, :Middlewares)
        end

        # For clients that are there already, too.
        def install(client) = client.register(Middleware)

        def name_of(command)
          name = command.first if command.is_a?(Array)
          name.upcase if name.is_a?(String)
        end

        def op(name, &) = Named.call(KIND, name, &)
      end
    end
  end
end
