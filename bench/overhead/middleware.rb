# frozen_string_literal: true

require_relative "per_call"

module Overhead
  # What the Rack middleware adds to a request of an app that does nothing.
  class Middleware
    REQUESTS = 50_000

    def initialize(options)
      require "rperf/rack"
      @options = options
      @app = ->(_) { [200, {}, []] }
      @middleware = Rperf::RackMiddleware.new(@app)
    end

    # @return [Array<Array<String>>] the rows of a table
    def rows
      variants = { "100 paths" => ->(number) { number % 100 }, "a new path each time" => :itself.to_proc }
      variants = variants.transform_values do |id|
        { alone: ->(requests) { serve(@app, id, requests) }, with: ->(requests) { serve(@middleware, id, requests) } }
      end
      PerCall.rows(variants, @options, count: REQUESTS)
    end

    private

    # Each one with an environment of its own, as servers make it.
    def serve(app, id, requests)
      number = 0
      while number < requests
        app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/users/#{id.call(number)}" })
        number += 1
      end
    end
  end
end
