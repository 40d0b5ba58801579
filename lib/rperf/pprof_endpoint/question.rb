# frozen_string_literal: true

module Rperf
  class PprofEndpoint
    # A question to the port of this process, and the Rack response that its answer makes.
    class Question
      # How long the answer may take beyond the time that is profiled, in seconds.
      PATIENCE = 10
      private_constant :PATIENCE

      # @param place [String] below /debug/pprof
      # @param seconds [String, nil] the time to profile
      def initialize(place, seconds = nil)
        @target = "/debug/pprof#{place}#{"?seconds=#{seconds}" if seconds}"
        @patience = seconds.to_f + PATIENCE
        @ends = -> { server_ends? } if seconds
      end

      # @return [Array] the Rack response
      def answer
        path = Rperf.listen or return Web::Answer.text(503, "Nothing can be profiled in this process.")
        response(OwnPort.ask(path, @target, patience: @patience, ends: @ends))
      rescue Error, ArgumentError, SystemCallError, IOError => e
        Web::Answer.text(503, "This process can't be asked: #{e.message.lines.first.to_s.chomp}")
      end

      private

      def response(answer)
        return Web::Answer.text(504, "Ruby's VM has taken too long to answer.") unless answer
        return Web::Answer.data(answer.body) if answer.type == "application/octet-stream"

        Web::Answer.text(answer.status, answer.body.chomp)
      end

      # Puma waits for its requests; others end them.
      def server_ends?
        defined?(::Puma::Server) && ::Puma::Server.current&.shutting_down?
      rescue NoMethodError
        false # Of another version.
      end
    end
    private_constant :Question
  end
end
