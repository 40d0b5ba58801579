# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # Names of endpoints: the method and the route, or, without a known route, the path
    # without the parts that differ between resources.
    class Endpoints
      # How many paths get a name of their own: clients can make up any number of them.
      LIMIT = 1000
      OTHER = "(other)"
      private_constant :LIMIT, :OTHER

      # @param path [String] of whatever encoding, as it came from the client
      # @return [String] with :id, :uuid, :hex and :token in place of parts that identify a resource, or are secrets
      def self.normalize(path) = Native.endpoint_path(path)

      def initialize
        # Method and path => name of the endpoint.
        @names = {}
      end

      # @return [String] such as "GET /users/:id"
      def path_name(env)
        Native.endpoint(env["REQUEST_METHOD"].to_s, env["SCRIPT_NAME"].to_s, env["PATH_INFO"].to_s)
      end

      # @return [String] what the last such request turned out to be, or the path's own name
      def name(path_name)
        known = @names[path_name]
        return known if known
        return OTHER if @names.size >= LIMIT

        @names[path_name] = path_name
      end

      # Notes the route that requests of this path take.
      def learn(path_name, route)
        @names[path_name] = route if @names.key?(path_name)
      end
    end
    private_constant :Endpoints
  end
end
