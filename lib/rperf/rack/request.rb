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
          request.label(route.join(" ")) if route
        end
      end

      def initialize(env, label_key)
        @label_key = label_key
        @fiber = Fiber.current
        env[KEY] = self
      end

      # Whether the request runs here. A part of an app may go on in a thread of its own,
      # or, with the same environment, after the end of the request.
      def here? = @fiber.equal?(Fiber.current)

      # Until the end of the request.
      def label(name) = Rperf.label(@label_key => name)

      def end
        @fiber = nil
      end
    end
    private_constant :Request
  end
end
