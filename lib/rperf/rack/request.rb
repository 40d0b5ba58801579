# frozen_string_literal: true

require_relative "keys"

module Rperf
  class RackMiddleware
    # A request from its arrival to its end, for {Routing} to find in the Rack environment.
    class Request
      Native.rack_requests(self, Keys::REQUEST, Keys::ACCOUNT, Keys::QUEUED) if Work::HAS_NATIVE

      # The block returns the chosen route as the method and the pattern; nil if it doesn't know.
      def self.routed(env)
        Work.attempt do
          request = env[Keys::REQUEST]
          route = yield if request&.here?
          request.take(route.join(" ").freeze) if route
        end
      end

      # @return [String, nil] the name of the endpoint of the request that the environment has
      def self.name_in(env)
        request = env[Keys::REQUEST]
        request.name if request.is_a?(Request)
      end

      # @return [String] the name of its endpoint, as far as it is known
      attr_reader :name

      # As Native.begin_request makes most of them.
      def initialize(env, endpoints, label_key)
        @endpoints = endpoints
        @path_name = endpoints.path_name(env)
        @name = endpoints.name(@path_name)
        @label_key = label_key
        @fiber = Fiber.current
        @routed = false
        env[Keys::REQUEST] = self
      end

      # @return [Hash{Symbol => String}] its labels, as far as its endpoint is known
      def labels = { @label_key => @name }

      # Whether the request runs in this fiber. Parts of an app may run in threads of their own,
      # or use the same environment after the request has ended.
      def here? = @fiber.equal?(Fiber.current)

      # Labels the rest of the request with its route. If the app has removed the label, it stays
      # removed. Of several routes, as an app can pass a request on, the path learns the first.
      def take(route)
        @endpoints.learn(@path_name, route) unless @routed
        @routed = true
        @name = route
        Rperf.label(@label_key => route) if Rperf.labels.key?(@label_key)
      end

      def end
        @fiber = nil
      end

      # Error pages show the environment: keep it short.
      def inspect = "#<Rperf request>"
    end
    private_constant :Request
  end
end
