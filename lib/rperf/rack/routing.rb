# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # Learns from Rails and Sinatra the route that they chose, just before its code runs.
    # Reading it from the Rack environment afterwards would be too late: the samples are taken.
    module Routing
      # Rails writes this at the end of nearly every route.
      RAILS_FORMAT = "(.:format)"
      private_constant :RAILS_FORMAT

      # Wraps the method that runs a route's block.
      module SinatraHook
        private

        def route_eval(&)
          Routing.sinatra(env)
          __rperf_route_eval(&)
        end
      end
      private_constant :SinatraHook

      class << self
        # Takes effect once for each framework, when it is loaded.
        def watch
          watch_rails if defined?(::ActiveSupport::Notifications)
          watch_sinatra if defined?(::Sinatra::Base)
        end

        def sinatra(env)
          Request.routed(env) do
            method, pattern = env["sinatra.route"]&.split(" ", 2)
            pattern && [method, "#{mount(env)}#{pattern}"]
          end
        end

        private

        def watch_sinatra
          return if @watches_sinatra

          @watches_sinatra = true
          Work.attempt { Wrapped.install(::Sinatra::Base, SinatraHook) }
        end

        def watch_rails
          @watch_rails ||= ::ActiveSupport::Notifications.subscribe("start_processing.action_controller") do |event|
            rails(event.payload)
          end
        end

        def rails(payload)
          # Other code may send such events, too.
          env = Work.attempt { payload[:request]&.env } or return
          Request.routed(env) do
            pattern = rails_pattern(env)
            route = if pattern
                      "#{mount(env)}#{pattern.delete_suffix(RAILS_FORMAT)}"
                    else
                      "#{payload[:controller]}##{payload[:action]}"
                    end
            [env["REQUEST_METHOD"], route]
          end
        end

        # Rails 7.1 to 8.0 put the pattern there, later versions the route, and earlier ones neither.
        def rails_pattern(env)
          env["action_dispatch.route_uri_pattern"] || env["action_dispatch.route"]&.path&.spec&.to_s
        end

        # The path at which the routing app is mounted; empty at the root.
        def mount(env) = Endpoints.normalize(env["SCRIPT_NAME"].to_s)
      end
    end
    private_constant :Routing
  end
end
