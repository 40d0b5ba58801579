# frozen_string_literal: true

module Rperf
  class Viewer
    # The viewer's page, the same as `rperf report` shows, and its policy.
    # docs/internals/viewer-format.md has the rules.
    class Page
      # Where the page has its data, or is told of a server.
      PLACE = "@RPERF_DATA@"
      # Characters of the server's path that need no escaping.
      OTHER = %r{[^A-Za-z0-9\-._~/%]}n
      private_constant :PLACE, :OTHER

      # @raise [Rperf::Error] if the gem's files are damaged
      def initialize
        @before, @after, *more = File.binread(File.join(__dir__, "viewer.html")).split(PLACE, -1)
        @policy = File.read(File.join(__dir__, "viewer.lock"))[/^csp (.+)$/, 1]
        raise Error, "the viewer's page is damaged: install rperf anew" unless @after && more.empty? && @policy
      end

      # @param env [Hash] the Rack environment
      # @param path [String] where the viewer is, below the app's own path
      def answer(env, path)
        base = "#{env["SCRIPT_NAME"]}#{path}/".b.gsub(OTHER) { |byte| format("%%%02X", byte.ord) }
        # Two slashes would begin the name of another host.
        Web::Answer.page("#{@before}server:#{base.sub(%r{\A/*}, "/")}#{@after}", @policy)
      end
    end
    private_constant :Page
  end
end
