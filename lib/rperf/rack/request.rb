# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # A request from its arrival to its end, for {Routing} to find in the Rack environment.
    class Request
      # Its place there.
      KEY = "rperf.request"
      private_constant :KEY

      # The block says which route was chosen, as the method and the pattern; nil if it can't.
      def self.routed(env)
        Work.attempt do
          request = env[KEY]
          route = yield if request&.here?
          request.take(route.join(" ").freeze) if route
        end
      end

      # @return [Hash{Symbol => String}] its labels on arrival
      attr_reader :labels

      def initialize(env, endpoints, label_key)
        @endpoints = endpoints
        @path_name = endpoints.path_name(env)
        @labels = { label_key => endpoints.name(@path_name) }
        @fiber = Fiber.current
        @routed = false
        env[KEY] = self
      end

      # Whether the request runs here. A part of an app may go on in a thread of its own,
      # or, with the same environment, after the end of the request.
      def here? = @fiber.equal?(Fiber.current)

      # Until the end of the request. A label that the app took away is left away. The path
      # leads to the first route: an app can pass the request on to others.
      def take(route)
        @endpoints.learn(@path_name, route) unless @routed
        @routed = true
        label_key = @labels.each_key.first
        Rperf.label(label_key => route) if Rperf.labels.key?(label_key)
      end

      def end
        @fiber = nil
      end

      # Pages that show the environment show this.
      def inspect = "#<Rperf request>"
    end
    private_constant :Request
  end
end
