# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "argument"
require_relative "middleware/work"

module Rperf
  # Rack middleware that labels the samples of each request with its endpoint, and
  # profiles requests in a session that was started with `defer: true`. It starts no
  # session itself, and while there is none it only hands requests on.
  #
  # The endpoint is the method and the route, as "GET /users/:id". Rails and Sinatra report
  # the route that they have chosen; samples taken before that get the route that this path
  # had last time. Without a known route, the endpoint is the path with :id, :uuid, :hex and
  # :token in place of the parts that differ between resources. 1,000 paths at most get a
  # name of their own; all others are "(other)".
  #
  # Work after the app has returned its response, such as streaming a body, has no label.
  #
  # @example
  #   require "rperf/rack"
  #   use Rperf::RackMiddleware
  #   use Rperf::RackMiddleware, label_key: :route
  #   use Rperf::RackMiddleware, label: ->(env) { env["HTTP_HOST"] }
  class RackMiddleware
    # @param app [#call] the Rack app
    # @param label_key [Symbol, String]
    # @param label [#call, nil] returns the label's value for a Rack environment; nil for no label
    # @raise [ArgumentError] for an argument that isn't allowed
    def initialize(app, label_key: :endpoint, label: nil)
      unless [Symbol, String].any? { |type| label_key.is_a?(type) } && !label_key.empty?
        Argument.reject(:label_key, label_key, "a Symbol or a String that isn't empty")
      end
      unless label.nil? || label.respond_to?(:call)
        Argument.reject(:label, label, "nil or something to call, such as a Proc")
      end

      @app = app
      @label_key = label_key.to_sym
      @label = label
      @endpoints = Endpoints.new
      Routing.watch unless label
    end

    # @param env [Hash] the Rack environment
    # @return the app's response
    def call(env)
      return @app.call(env) unless Work.profiled?
      return Work.run(custom_label(env)) { @app.call(env) } if @label

      begin
        request = Request.usual(env, @endpoints, @label_key) ||
                  Work.attempt { Request.new(env, @endpoints, @label_key) }
        Work.run(request&.labels) { @app.call(env) }
      ensure
        request&.end
      end
    end

    private

    def custom_label(env)
      Work.attempt do
        value = @label.call(env)
        { @label_key => value.to_s } unless value.nil?
      end
    end
  end

  # A shorter name for the same class.
  Middleware = RackMiddleware
end

require_relative "rack/endpoints"
require_relative "rack/request"
require_relative "rack/routing"
