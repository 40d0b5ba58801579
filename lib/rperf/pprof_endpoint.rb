# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "../rperf"
require_relative "argument"
require_relative "live/own_port"
require_relative "web/access"
require_relative "web/answer"

module Rperf
  # Rack middleware, or an app of its own, where Go's tools and collectors of profiles get the profile of some seconds:
  # /debug/pprof/profile?seconds=10. It is of the process that got the request, and its comments say so.
  #
  # The process's port answers, which the first request opens; see {Rperf.listen}. So clients share a session, and if
  # one runs that the program has begun, they get the difference of two snapshots of it.
  #
  # @example In a config.ru
  #   require "rperf/pprof_endpoint"
  #   use Rperf::PprofEndpoint, auth: ->(env) { env["HTTP_AUTHORIZATION"] == "Bearer #{ENV.fetch("PPROF_TOKEN")}" }
  # @example Among the routes of a Rails app
  #   mount Rperf::PprofEndpoint.new(auth: ...), at: "/debug/pprof"
  class PprofEndpoint
    PATH = "/debug/pprof"
    NOTHING = "There is nothing here but profile?seconds=10 and cmdline."
    # What the port is asked for.
    PLACES = ["/", "/profile", "/cmdline"].freeze
    # How long Go's tools think that a profile takes.
    USUAL_SECONDS = "30"
    SECONDS = /\A\d{1,5}(?:\.\d{1,3})?\z/
    private_constant :PATH, :NOTHING, :PLACES, :USUAL_SECONDS, :SECONDS

    # @param app [#call, nil] the Rack app; nil: there is none but the endpoint
    # @param path [String, nil] where the endpoint is; nil: "/debug/pprof", or "" without an app
    # @param auth [#call, nil] gets the Rack environment, and returns whether whoever asks may have profiles; nil:
    #   private addresses may in development, and nobody may elsewhere
    # @param max_seconds [Integer] the longest time of a profile
    # @raise [ArgumentError] for an argument that isn't allowed
    def initialize(app = nil, path: nil, auth: nil, max_seconds: 60)
      Web::Access.check(auth)
      unless max_seconds.is_a?(Integer) && max_seconds.positive?
        Argument.reject(:max_seconds, max_seconds, "an Integer above 0")
      end

      @app = app
      @path = (path || (app ? PATH : "")).delete_suffix("/").b.freeze
      @access = Web::Access.new(auth, "Rperf::PprofEndpoint")
      @max_seconds = max_seconds
      @access.report_closed(@path)
    end

    # @param env [Hash] the Rack environment
    # @return the endpoint's response to requests below its path, to all others the app's
    def call(env)
      path = env["PATH_INFO"].to_s.b
      place = path[@path.size..] if path.start_with?(@path)
      return answer(env, place) if place && (place.empty? || place.start_with?("/"))

      @app ? @app.call(env) : Web::Answer.text(404, NOTHING)
    end

    # Error pages show middleware and the Rack environment: keep it short.
    def inspect = "#<Rperf::PprofEndpoint #{@path}>"

    private

    def answer(env, place)
      place = "/" if place.empty?
      @access.refusal(env) || Web::Access.foreign(env) || wrong(env, place) || asked(env, place)
    end

    def wrong(env, place)
      return Web::Answer.text(405, "This takes GET only.", { "allow" => "GET" }) unless env["REQUEST_METHOD"] == "GET"

      # As the port says of them: Go's programs have more kinds.
      Web::Answer.text(501, NOTHING) unless PLACES.include?(place)
    end

    def asked(env, place)
      return Question.new(place).answer unless place == "/profile"

      seconds = env["QUERY_STRING"].to_s.b[/(?:\A|&)seconds=([^&]*)/, 1] || [USUAL_SECONDS.to_i, @max_seconds].min.to_s
      return Question.new(place, seconds).answer if SECONDS.match?(seconds) && allowed.cover?(seconds.to_f)

      Web::Answer.text(400, "seconds: must be #{allowed.begin} to #{allowed.end}.")
    end

    def allowed = 0.01..@max_seconds
  end
end

require_relative "pprof_endpoint/question"
