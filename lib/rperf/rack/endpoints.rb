# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # Names of endpoints: the method and the route, or, without a known route, the path
    # without the parts that differ between resources.
    class Endpoints
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

      # @return [String] what the last such request turned out to be, or the path's own name. 1,000 paths at most have
      #   one: clients can make up any number of them.
      def name(path_name) = Native.endpoint_name(@names, path_name)

      # Notes the route that requests of this path take.
      def learn(path_name, route)
        @names[path_name] = route if @names.key?(path_name)
      end
    end
    private_constant :Endpoints
  end
end
