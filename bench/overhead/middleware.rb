# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/interleave"
require_relative "../support/statistics"

module Overhead
  # What the Rack middleware adds to a request, in this process: to requests of an app that does nothing, one after
  # the other.
  class Middleware
    REQUESTS = 50_000
    # By the arguments of Rperf.start; nil: there is no session.
    SESSIONS = {
      "none" => nil, "cpu" => { mode: :cpu }, "wall" => { mode: :wall }, "deferred" => { mode: :wall, defer: true }
    }.freeze
    HEADINGS = ["session", "app alone, ns/request", "with middleware", "more", "quartiles"].freeze

    def initialize(options)
      require "rperf/rack"
      @options = options
      @requests = (REQUESTS * options[:scale]).ceil
      app = ->(_) { [200, {}, []] }
      @apps = { alone: app, with: Rperf::RackMiddleware.new(app) }
    end

    # @return [Array<Array<String>>] the rows of a table
    def rows
      runs = Bench::Interleave.call(SESSIONS.keys, runs: @options[:runs]) { |session| measure(session) }
      runs.map { |session, results| row(session, results) }
    end

    private

    # Nanoseconds a request, by app.
    def measure(session)
      settings = SESSIONS[session]
      Rperf.start(frequency: @options[:frequency], **settings) if settings
      @apps.transform_values do |app|
        started = Bench::Clock.wall
        serve(app)
        (Bench::Clock.wall - started).fdiv(@requests)
      end
    ensure
      Rperf.stop if settings
    end

    # Each one with an environment of its own, as servers make it.
    def serve(app)
      number = 0
      while number < @requests
        app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/users/#{number % 100}" })
        number += 1
      end
    end

    def row(session, results)
      more = results.map { |result| result[:with] - result[:alone] }
      [session, *%i[alone with].map { |key| ns(results.map { |result| result[key] }) }, ns(more),
       Bench::Statistics.quartiles(more).map { |it| ns([it]) }.join(" to ")]
    end

    def ns(values) = format("%.0f", Bench::Statistics.median(values))
  end
end
