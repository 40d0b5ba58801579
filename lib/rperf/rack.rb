# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "argument"
require_relative "middleware/work"
require_relative "wrapped"

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
  # With `Rperf.start(mode: :account)`, each request has an {Account} in `env["rperf.account"]`, from its
  # arrival until the app returns its response.
  #
  # @example
  #   require "rperf/rack"
  #   use Rperf::RackMiddleware
  #   use Rperf::RackMiddleware, label_key: :route
  #   use Rperf::RackMiddleware, label: ->(env) { env["HTTP_HOST"] }
  #   use Rperf::RackMiddleware, server_timing: ->(env) { env["REMOTE_USER"] == "admin" }
  class RackMiddleware
    # @param app [#call] the Rack app
    # @param label_key [Symbol, String]
    # @param server_timing [#call, nil] returns whether the response to a request, given as its Rack environment, has
    #   the header Server-Timing; nil: none has it, because it tells whoever asks how long the app takes for what
    # @param label [#call, nil] returns the label's value for a Rack environment; nil for no label
    # @raise [ArgumentError] for an argument that isn't allowed
    def initialize(app, label_key: :endpoint, label: nil, server_timing: nil)
      unless [Symbol, String].any? { |type| label_key.is_a?(type) } && !label_key.empty?
        Argument.reject(:label_key, label_key, "a Symbol or a String that isn't empty")
      end
      check_callable(:label, label)
      check_callable(:server_timing, server_timing)

      @app = app
      @label_key = label_key.to_sym
      @label = label
      @server_timing = server_timing
      @endpoints = Endpoints.new
      @is_unusual = label || server_timing || !Work::HAS_NATIVE
      Routing.watch unless label
    end

    # @param env [Hash] the Rack environment
    # @return the app's response
    def call(env)
      return call_with_care(env) if @is_unusual
      return @app.call(env) unless Native.wanted?

      opened = []
      undo = []
      begin
        is_labelled = Native.begin_request(opened, undo, env, @endpoints, @label_key)
        return call_with_care(env) if is_labelled.nil?

        Work.enter(undo, opened.first.labels) unless is_labelled
        @app.call(env)
      ensure
        begin
          is_done = Native.end_request(opened, undo, env)
        ensure
          finish(opened, undo) unless is_done
        end
      end
    end

    private

    # What Native.end_request has left: a section that ends the last one, or an account that the program is to be
    # told of.
    def finish(opened, undo)
      Work.leave(undo) unless undo.empty?
    ensure
      Accounts.tell(opened.first) unless opened.empty?
    end

    # As `call`, for whatever request.
    def call_with_care(env)
      return @app.call(env) unless Work.wanted? || (@server_timing && Work.accountable?)

      if RequestAccount.wanted?(env, @server_timing)
        return RequestAccount.run(env, @server_timing, @endpoints) { answer(env) }
      end

      Work.profiled? ? answer(env) : @app.call(env)
    end

    # The app's response to a request that has labels.
    def answer(env)
      return answer_with_custom_label(env) if @label

      begin
        request = Work.attempt { Request.new(env, @endpoints, @label_key) }
        Work.run(request&.labels) { @app.call(env) }
      ensure
        request&.end
      end
    end

    def answer_with_custom_label(env)
      labels = custom_label(env)
      RequestAccount.name(env, labels[@label_key]) if labels
      Work.run(labels) { @app.call(env) }
    end

    def check_callable(name, value)
      return if value.nil? || value.respond_to?(:call)

      Argument.reject(name, value, "nil or something to call, such as a Proc")
    end

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
require_relative "rack/request_account"
require_relative "rack/routing"
