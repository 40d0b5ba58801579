# frozen_string_literal: true

return if defined?(Rperf) && Rperf.respond_to?(:instead_of, true) && Rperf.send(:instead_of, __FILE__)

require_relative "../rperf"
require_relative "argument"
require_relative "web/access"
require_relative "web/answer"

module Rperf
  # Rack middleware, or an app of its own, that shows profiles of the running process in the web viewer: it takes
  # snapshots, keeps the last ones in memory, shows each, and compares two. It starts no session.
  #
  # A snapshot is of the time since the one before, as {Rperf.snapshot} takes it with `clear: true`. In a program that
  # is profiled as a whole, as by `rperf record`, it is of all the time since the program's start; the page says so.
  #
  # Each process has snapshots of its own.
  #
  # @example In a config.ru, above what labels the requests
  #   require "rperf/viewer"
  #   use Rperf::Viewer, auth: ->(env) { env["rack.session"]["admin"] }
  #   use Rperf::RackMiddleware
  # @example Among the routes of a Rails app
  #   mount Rperf::Viewer.new, at: "/rperf"
  class Viewer
    # Paths that need no escaping in the page.
    PATH = %r{\A(?:/[\w.~%-]+)*/?\z}
    private_constant :PATH

    class << self
      # @return [Rperf::Viewer, nil] the one that was made last
      attr_reader :instance

      private

      attr_writer :instance
    end

    # @param app [#call, nil] the Rack app; nil: there is none but the viewer
    # @param path [String, nil] where the viewer is; nil: "/rperf", or "" without an app
    # @param max_snapshots [Integer] so many are kept; older ones are dropped
    # @param max_bytes [Integer] and so many bytes of them, but for the newest, which is always kept
    # @param auth [#call, nil] gets the Rack environment, and returns whether whoever asks may see, take and delete
    #   snapshots; nil: private addresses may in development, and nobody may elsewhere
    # @raise [ArgumentError] for an argument that isn't allowed
    def initialize(app = nil, path: nil, max_snapshots: 24, max_bytes: 64_000_000, auth: nil)
      Web::Access.check(auth)
      @app = app
      @path = checked_path(path)
      @access = Web::Access.new(auth)
      @snapshots = Snapshots.new(count: limit(:max_snapshots, max_snapshots), bytes: limit(:max_bytes, max_bytes))
      @routes = Routes.new(self, @snapshots)
      @access.report_closed(@path)
      Viewer.send(:instance=, self)
    end

    # @param env [Hash] the Rack environment
    # @return the viewer's response to requests below its path, to all others the app's
    def call(env)
      place = place(env["PATH_INFO"].to_s)
      return unlabelled { answer(env, place) } if place

      @app ? @app.call(env) : Web::Answer.text(404, Routes::NOTHING)
    end

    # Takes a snapshot and keeps it. Any thread may do so, but no handler of a signal.
    #
    # @return [String, nil] its id; nil if profiling is off
    # @raise [Rperf::Error] in a session with `aggregate: false`
    def take_snapshot!
      @snapshots.add do
        session = RunningSession.get
        session&.snapshot(session.initiator.nil?)
      end
    end

    # Keeps a profile that was made elsewhere.
    #
    # @param data [Hash, nil] what {Rperf.snapshot} or {Rperf.stop} returned
    # @return [String, nil] its id; nil for nil
    # @raise [ArgumentError] for a Hash that isn't a profile
    def add_snapshot(data)
      @snapshots.add { Asking.natives.of(data) } unless data.nil?
    end

    # Error pages show middleware and the Rack environment: keep it short.
    def inspect = "#<Rperf::Viewer #{@path}>"

    private

    # The part of the path below ours; nil for a path of the app.
    def place(path)
      path = path.b
      return unless path.start_with?(@path)

      rest = path[@path.size..]
      rest if rest.empty? || rest.start_with?("/")
    end

    # The page's own requests are not the app's: they get none of its labels.
    def unlabelled(&)
      labels = Rperf.labels
      labels.empty? ? yield : Rperf.label(**labels.transform_values { nil }, &)
    end

    def answer(env, place)
      status, headers, body = @access.refusal(env) || @routes.answer(env, place, @path)
      [status, headers, env["REQUEST_METHOD"] == "HEAD" ? [] : body]
    end

    def checked_path(path)
      path = @app ? "/rperf" : "" if path.nil?
      Argument.reject(:path, path, "a path such as \"/rperf\"") unless path.is_a?(String) && PATH.match?(path)

      path = path.delete_suffix("/").b.freeze
      raise ArgumentError, "path: must not be \"/\": the app would never be asked" if @app && path.empty?

      path
    end

    def limit(name, value)
      return value if value.is_a?(Integer) && value.positive?

      Argument.reject(name, value, "an Integer above 0")
    end
  end
end

require_relative "viewer/page"
require_relative "viewer/routes"
require_relative "viewer/running_session"
require_relative "viewer/snapshots"
