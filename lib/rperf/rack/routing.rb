# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # Hears from Rails and Sinatra which route they chose, just before its code runs.
    # Afterwards, from the Rack environment, would be too late: the samples are taken.
    module Routing
      # Rails writes this at the end of nearly every route.
      RAILS_FORMAT = "(.:format)"
      private_constant :RAILS_FORMAT

      # In front of the method that runs a route's block.
      module SinatraHook
        private

        def route_eval
          Routing.sinatra(env)
          super
        end
      end
      private_constant :SinatraHook

      class << self
        # Takes effect once for each framework, as soon as that is loaded.
        def watch
          watch_rails if defined?(::ActiveSupport::Notifications)
          ::Sinatra::Base.prepend(SinatraHook) if defined?(::Sinatra::Base)
        end

        def sinatra(env)
          Request.routed(env) do
            method, pattern = env["sinatra.route"]&.split(" ", 2)
            pattern && [method, "#{mount(env)}#{pattern}"]
          end
        end

        private

        def watch_rails
          @watch_rails ||= ::ActiveSupport::Notifications.subscribe("start_processing.action_controller") do |event|
            rails(event.payload)
          end
        end

        def rails(payload)
          # Others may send such events too.
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

        # Rails 7.1 to 8.0 put the pattern there, later ones the route; before there was neither.
        def rails_pattern(env)
          env["action_dispatch.route_uri_pattern"] || env["action_dispatch.route"]&.path&.spec&.to_s
        end

        # Where the app that routes is mounted, if it isn't at the root.
        def mount(env) = Endpoints.normalize(env["SCRIPT_NAME"].to_s)
      end
    end
    private_constant :Routing
  end
end
