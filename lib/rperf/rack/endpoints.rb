# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # Names of endpoints: the method and the route, or, without a known route, the path
    # without the parts that differ between resources.
    class Endpoints
      # Parts of a path that identify a resource, or are secrets. No letter or digit is next to them.
      VARIABLE = /
        (?<![[:alnum:]])
        (?: (?<uuid>\h{8}-\h{4}-\h{4}-\h{4}-\h{12}) | (?<number>\d+) | (?<hex>(?=\h*\d)\h{16,}) )
        (?![[:alnum:]])
        | (?<![\w-]) (?<token>(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,})
        | \d{5,}
      /x
      ESCAPE = /%\h\h/
      KINDS = { number: ":id", uuid: ":uuid", hex: ":hex", token: ":token" }.freeze
      # How many paths get a name of their own: clients can make up any number of them.
      LIMIT = 1000
      OTHER = "(other)"
      private_constant :VARIABLE, :ESCAPE, :KINDS, :LIMIT, :OTHER

      # @param path [String] of whatever encoding, as it came from the client
      # @return [String] with :id, :uuid, :hex and :token in it
      def self.normalize(path)
        path = path.b
        path = path.gsub(ESCAPE) { |escape| escape[1, 2].hex.chr } if path.include?("%")
        path = path.gsub(VARIABLE) do
          match = Regexp.last_match
          KINDS.find { |kind, _| match[kind] }&.last || ":id"
        end
        path.force_encoding(Encoding::UTF_8).scrub
      end

      def initialize
        # Method and path => name of the endpoint.
        @names = {}
      end

      # @return [String] such as "GET /users/:id"
      def path_name(env)
        path = self.class.normalize(env["SCRIPT_NAME"].to_s.b + env["PATH_INFO"].to_s.b)
        "#{env["REQUEST_METHOD"]} #{path.empty? ? "/" : path}".freeze
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
