# frozen_string_literal: true

require_relative "../argument"
require_relative "../hooks/fork_guard"

# Profiles that a program sends itself.
module Rperf
  class << self
    # Sends the profile of this process to a server, one stretch of time after the other, from a thread that sleeps
    # meanwhile. It is for programs beside which `rperf push` can't run. Forked children send theirs, too. What goes
    # wrong is said on stderr, and never raised later. A second call takes the place of the first.
    #
    # @param to [String, nil] the URL of a server of Pyroscope; or else
    # @param otlp [String, nil] the URL of a collector of OpenTelemetry
    # @param every [Numeric] how many seconds a stretch is: 1 to 3600
    # @param service [String, nil] the name of the service; nil: OTEL_SERVICE_NAME, or "ruby"
    # @param labels [Hash] further labels of all profiles
    # @param headers [Hash] headers of all requests
    # @param mode [Symbol] :wall or :cpu
    # @param frequency [Integer] samples per second, 1 to 1000
    # @param measure [Symbol, Array<Symbol>, nil] what else: :"alloc=sampled": some of the objects that are made, with
    #   their callers; :ops: queries and other ops are frames, with their names
    # @return [String] the server's URL, without a password
    # @raise [ArgumentError] for an argument that isn't allowed
    # @raise [Rperf::Error] if there can't be a port, of which this is a client
    def push(to: nil, otlp: nil, every: 15, service: nil, labels: {}, headers: {}, mode: :wall, frequency: 100,
             measure: nil)
      url = pushed_to(to, otlp)
      in_range(:every, every, Numeric, 1..3600)
      in_range(:frequency, frequency, Integer, 1..NativePush::MOST_FREQUENT)
      Argument.one_of(:mode, mode, %i[wall cpu])
      query = "mode=#{mode}&frequency=#{frequency}#{measured(measure)}"
      Argument.reject(:service, service, "a String or nil") unless service.nil? || Argument.a?(service, String)
      pairs = [pairs(:labels, labels, "="), pairs(:headers, headers, ":")]
      destination = NativePush.to(!otlp.nil?, url, service, *pairs)
      # As late as the libraries that it needs: most programs push nothing.
      require_relative "../live/push"
      ForkGuard.install
      Push.begin(Push::Plan.new(destination, every.to_f, query))
      destination.shown
    end

    private

    def pushed_to(pyroscope, otlp)
      given = [pyroscope, otlp].compact
      raise ArgumentError, "push: needs either to: or otlp:" unless given.size == 1
      return given.first if Argument.a?(given.first, String)

      Argument.reject(pyroscope.nil? ? :otlp : :to, given.first, "a URL (a String)")
    end

    PUSHED_MEASURES = %i[alloc=sampled ops].freeze
    private_constant :PUSHED_MEASURES

    # Their part of a query.
    def measured(measure)
      measures = case measure
                 when nil then []
                 when Array then measure
                 else [measure]
                 end
      unless measures.all? { |word| PUSHED_MEASURES.include?(word) }
        Argument.reject(:measure, measure, ":\"alloc=sampled\", :ops or an Array of them or nil (nothing more)")
      end
      measures.empty? ? "" : "&measure=#{measures.uniq.join(",")}"
    end

    def in_range(name, value, type, range)
      return if Argument.a?(value, type) && value.real? && range.cover?(value)

      Argument.reject(name, value, "#{type == Integer ? "an Integer" : "a number"} from #{range.begin} to #{range.end}")
    end

    def pairs(name, hash, between)
      Argument.reject(name, hash, "a Hash") unless Argument.a?(hash, Hash)
      hash.map do |key, value|
        raise ArgumentError, "#{name}: a name can't have #{between}" if key.to_s.include?(between)

        "#{key}#{between}#{value}"
      end
    end
  end
end
