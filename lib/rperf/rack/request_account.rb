# frozen_string_literal: true

require_relative "keys"

module Rperf
  class RackMiddleware
    # The account of a request, in its Rack environment.
    module RequestAccount
      # The header for a browser's page of timings, as Rack 3 wants its name.
      TIMING = "server-timing"
      private_constant :TIMING

      class << self
        # @param timing [#call, nil] whether the response tells it
        # @return [Boolean] whether the request is to get one, or its response to tell of the one that it has
        def wanted?(env, timing)
          return !timing.nil? && Work.accountable? unless Work.accounted?

          !timing.nil? || !open_in?(env)
        end

        # @return the block's response
        def run(env, timing, endpoints, &)
          return tell(yield, env, timing) if open_in?(env)

          Accounts.run do |account|
            attempt { begin_request(env, account) }
            tell(named(env, account, endpoints, &), env, timing)
          end
        end

        # Names the account of the request, if it has one without a name.
        def name(env, name)
          account = env[Keys::ACCOUNT]
          account.name ||= name if account.is_a?(Account)
        end

        private

        def attempt(&) = Work.attempt(failure: "has no account as it should", &)

        def open_in?(env)
          account = env[Keys::ACCOUNT]
          account.is_a?(Account) && account.open?
        end

        def begin_request(env, account)
          env[Keys::ACCOUNT] = account
          account.queue_ns = Native.queue_ns(env[Keys::QUEUED].to_s)
        end

        def named(env, account, endpoints)
          yield
        ensure
          account.name ||= Request.name_in(env) || attempt { endpoints.name(endpoints.path_name(env)) }
        end

        # The response, with the header if it is to have it.
        def tell(response, env, timing)
          tells = timing && attempt { timing.call(env) }
          tells ? attempt { told(response, env[Keys::ACCOUNT].server_timing) } || response : response
        end

        # The response with this value of the header.
        def told(response, value)
          return if value.empty?

          status, headers, body = response
          name = headers.key?("Server-Timing") ? "Server-Timing" : TIMING
          value = [headers[name], value].compact.join(", ")
          return [status, headers.merge(name => value), body] if headers.frozen?

          headers[name] = value
          response
        end
      end
    end
    private_constant :RequestAccount
  end
end
