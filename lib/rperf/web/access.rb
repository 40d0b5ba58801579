# frozen_string_literal: true

require "ipaddr"
require_relative "../argument"
require_relative "../stderr"
require_relative "answer"

module Rperf
  # What our Rack apps have in common.
  module Web
    # Who may see the viewer.
    class Access
      # Variables in which servers and frameworks tell where an app runs. If they differ, it isn't in development.
      ENVIRONMENTS = %w[RAILS_ENV RACK_ENV APP_ENV].freeze
      # Names that always mean this machine.
      LOCAL_NAME = /\A(?:localhost|[\w.-]+\.(?:localhost|test))\z/i
      HOST = /\A(?<name>\[[\h:.]+\]|[^:\[\]]+)(?::\d+)?\z/
      private_constant :ENVIRONMENTS, :LOCAL_NAME, :HOST

      # @raise [ArgumentError] for an `auth:` that can't be asked
      def self.check(auth)
        return if auth.nil? || auth.respond_to?(:call)

        Argument.reject(:auth, auth, "nil or something to call, such as a Proc")
      end

      # @return [Boolean] whether all that say where the app runs say development, and one does
      def self.development?
        named = ENVIRONMENTS.filter_map { |name| ENV.fetch(name, nil) }.reject(&:empty?)
        named.any? && named.all?("development")
      end

      # A page of another site can't send this header without asking first, and is told no.
      # @return [Array, nil] the response to a request that changes something and isn't from our page
      def self.forged(env)
        return foreign(env) if env["HTTP_X_RPERF"] == "1"

        Answer.text(403, "A request that changes something needs the header X-Rperf: 1.")
      end

      # @return [Array, nil] the response to a request that a page of another site makes
      def self.foreign(env)
        return if [nil, "same-origin", "none"].include?(env["HTTP_SEC_FETCH_SITE"])

        Answer.text(403, "Pages of other sites get nothing here.")
      end

      # @param auth [#call, nil]
      # @param name [String] of the class whose pages it is about
      def initialize(auth, name = "Rperf::Viewer")
        @auth = auth
        @name = name
        @closed = auth.nil? && !self.class.development?
      end

      # Tells whoever runs the app that nobody can see the page yet.
      def report_closed(path)
        Stderr.write("rperf: #{what} at #{path}/ is closed: #{why_closed}\n") if @closed
      end

      # @return [Array, nil] the response to those who may not see the viewer
      def refusal(env)
        if @closed
          Answer.text(403, "#{what.capitalize} is closed: #{why_closed}.")
        elsif @auth
          Answer.text(403, "You may not see this: auth: of #{@name} says no.") unless @auth.call(env)
        elsif !local?(env)
          Answer.text(403, "Without auth:, #{@name} answers only requests from a private address " \
                           "to localhost, *.localhost, *.test or a private address.")
        end
      end

      private

      def what = @name == "Rperf::Viewer" ? "the viewer" : "the profile endpoint"

      def why_closed
        "outside of development (RAILS_ENV, RACK_ENV, APP_ENV) #{@name} needs auth:, which says who may see it"
      end

      def local?(env)
        hosts(env).all? { |host| local_name?(host) || private?(host) } && clients(env).all? { |from| private?(from) }
      end

      # As the client names us, and as a proxy says that it did. Another site's name may have been made to lead here,
      # and its pages could then read ours.
      def hosts(env) = [(env["HTTP_HOST"] || env["SERVER_NAME"]).to_s.b, *listed(env["HTTP_X_FORWARDED_HOST"])]

      # Where the request comes from, as far as it is known. Servers take an app for one in development if nobody has
      # said where it runs.
      def clients(env) = listed(env["REMOTE_ADDR"]) + listed(env["HTTP_X_FORWARDED_FOR"])

      def listed(header) = header.to_s.b.split(",").map(&:strip)

      def local_name?(host) = LOCAL_NAME.match?(without_port(host))

      def private?(address)
        address = IPAddr.new(without_port(address))
        # 0.0.0.0, where servers say that they listen, is this machine.
        address.loopback? || address.private? || address.link_local? || address.to_i.zero?
      rescue IPAddr::Error
        false
      end

      def without_port(address) = HOST.match(address)&.[](:name) || address
    end
  end
  private_constant :Web
end
