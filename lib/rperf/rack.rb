# frozen_string_literal: true

require_relative "work"

module Rperf
  # Rack middleware that labels the samples of each request with its endpoint, and
  # profiles requests in a session that was started with `defer: true`. It starts no
  # session itself, and while there is none it only hands requests on.
  #
  # The endpoint is the method and the route, as "GET /users/:id". Rails and Sinatra say
  # which route they have chosen; samples from before that have the route that the path
  # led to last time. Where no route is known, the endpoint is the path with :id, :uuid,
  # :hex and :token for what differs from one resource to the next; so many as 1,000
  # paths get a name of their own, and all others are "(other)".
  #
  # What is done with the response after the app has returned it, as when a body is
  # streamed, has no label.
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
        raise ArgumentError, "label_key: must be a Symbol or a String that isn't empty, not #{Options.shown(label_key)}"
      end
      unless label.nil? || label.respond_to?(:call)
        raise ArgumentError, "label: must be nil or something to call, such as a Proc, not #{Options.shown(label)}"
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
        request = Work.attempt { Request.new(env, @endpoints, @label_key) }
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

  # The same by its shorter name.
  Middleware = RackMiddleware
end

require_relative "rack/endpoints"
require_relative "rack/request"
require_relative "rack/routing"
