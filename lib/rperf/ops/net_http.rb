# frozen_string_literal: true

module Rperf
  module Ops
    # Requests of Net::HTTP: their method and the server, never the path. The connection is part of one that has to make
    # it first: Net::HTTP#request calls itself then, as soon as it is connected.
    module NetHTTP
      KIND = "http"
      # The fiber-local variable with the Net::HTTP whose request has a name.
      CALLING = :__rperf_calling__
      private_constant :CALLING

      # Wraps a request.
      module Request
        def request(*arguments, **, &)
          return __rperf_request(*arguments, **, &) unless Native.main_ractor? && Native.ops?

          name, outer = Guard.attempt("of Net::HTTP are missing") { NetHTTP.name_of(self, arguments.first) }
          return __rperf_request(*arguments, **, &) unless name

          undo = []
          begin
            NetHTTP.calling = self
            Native.begin_op(undo, KIND, name)
            __rperf_request(*arguments, **, &)
          ensure
            Native.end_op(undo)
            NetHTTP.calling = outer
          end
        end
      end
      private_constant :Request

      class << self
        def find
          found = Loaded.module(:Net, :HTTP)
          found if found.is_a?(Class)
        end

        def install(http) = Wrapped.install(http, Request)

        # @return [Array, nil] the name, and the Net::HTTP that is calling already; nil if this call is part of its own,
        #   or has no name
        def name_of(http, request)
          thread = Builtin::CURRENT_THREAD.call
          outer = thread[CALLING]
          return if http.equal?(outer) || thread.frozen?

          case request
          when ::Net::HTTPGenericRequest
            server = server_of(http)
            ["#{request.method} #{server}", outer] if server
          end
        end

        def calling=(http)
          Builtin::CURRENT_THREAD.call[CALLING] = http
        end

        private

        def server_of(http)
          host = http.address
          return unless host.is_a?(String) && !host.empty?

          host = "[#{host}]" if host.include?(":")
          port = ":#{http.port}" unless http.port == (http.use_ssl? ? 443 : 80)
          "#{host.downcase}#{port}"
        end
      end
    end
  end
end
