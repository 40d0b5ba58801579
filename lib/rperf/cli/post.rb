# frozen_string_literal: true

module Rperf
  module CLI
    # Sends what `rperf push` has, by Ruby's own HTTP and TLS, and through the proxy of the environment.
    module Post
      # Seconds to connect, and for each piece that goes or comes.
      OPEN = 5
      PIECE = 10
      # Bytes of an answer that are shown.
      SHOWN = 200
      private_constant :OPEN, :PIECE, :SHOWN

      class << self
        # @param headers [Array<Array(String, String)>]
        # @return [Array(Integer, String)] HTTP's status, or 0 if there is none, and what was said
        def call(url, headers, body)
          require "net/http"
          uri = URI(url)
          response = connected(uri) { |http| http.request(request(uri, headers, body)) }
          [response.code.to_i, line(response.body.to_s)]
        rescue StandardError => e
          [0, line("#{e.message} (#{e.class})")]
        end

        private

        def connected(uri, &)
          Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https", open_timeout: OPEN, read_timeout: PIECE,
                                              write_timeout: PIECE, max_retries: 0, &)
        end

        def request(uri, headers, body)
          request = Net::HTTP::Post.new(uri.request_uri, headers.to_h)
          request["User-Agent"] = "rperf/#{VERSION}"
          request.basic_auth(*[uri.user, uri.password].map { |text| URI.decode_uri_component(text.to_s) }) if uri.user
          request.body = body
          request
        end

        # What comes back may be in any encoding, and long.
        def line(text)
          text = text.byteslice(0, SHOWN).force_encoding(Encoding::UTF_8).scrub("?")
          text.tr("\r\n", " ").strip
        end
      end
    end
    private_constant :Post
  end
end
