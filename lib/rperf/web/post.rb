# frozen_string_literal: true

module Rperf
  module Web
    # Sends what `rperf push` and {Rperf.push} have: by Ruby's HTTP and TLS, through the proxy of the environment.
    module Post
      # Seconds to connect, and for each piece that goes or comes.
      OPEN = 5
      PIECE = 10
      # Seconds for all of it, once connected; pieces of an answer, which have 16 KB at most; and bytes that go at once.
      WHOLE = 60
      PIECES = 500
      WRITTEN = 1 << 14
      # Bytes of an answer that are read, and that are shown.
      READ = 1 << 16
      SHOWN = 200
      private_constant :OPEN, :PIECE, :WHOLE, :PIECES, :WRITTEN, :READ, :SHOWN

      # Bounds what Net::HTTP doesn't: a server may take and send a byte now and then, or a head without end.
      module Bounds
        class << self
          def extended(socket) = socket.instance_variable_set(:@rperf_until, now + WHOLE)

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        private

        def rbuf_fill
          @rperf_pieces = (@rperf_pieces || 0) + 1
          raise IOError, "its answer has no end" if @rperf_pieces > PIECES

          @read_timeout = rperf_left(Net::ReadTimeout)
          super
        end

        # All of a text is one write otherwise, however long each byte of it takes.
        def write0(*texts)
          texts.sum do |text|
            0.step(text.bytesize - 1, WRITTEN).sum do |at|
              @write_timeout = rperf_left(Net::WriteTimeout)
              super(text.byteslice(at, WRITTEN))
            end
          end
        end

        # Seconds for the next piece.
        def rperf_left(error)
          left = @rperf_until - Bounds.now
          raise error, @io.to_io unless left.positive?

          [left, PIECE].min
        end
      end
      private_constant :Bounds

      class << self
        # @param headers [Array<Array(String, String)>]
        # @param open [Integer, nil] seconds to connect; nil: TCP as long as the system tries, and without the thread
        #   that Timeout leaves in the process
        # @return [Array(Integer, String, String, Float)] HTTP's status, or 0 if there is none; a line of what was said,
        #   and all of it; and the seconds after which to come again, or -1
        def call(url, headers, body, open: OPEN)
          load(url)
          uri = URI(url)
          response, said = connected(uri, open) { |http| exchange(http, request(uri, headers, body)) }
          [response.code.to_i, line(said), said, retry_after(response)]
        rescue URI::Error, ArgumentError => e
          # What they say may be the URL with its password, or a header.
          [0, "it can't be sent (#{e.class})", "", -1.0]
        rescue StandardError => e
          [0, line("#{e.message} (#{e.class})"), "", -1.0]
        end

        # All that is needed to send.
        def load(url)
          require "net/http"
          require "time"
          require "openssl" if url.start_with?("https:")
          client
        end

        private

        def connected(uri, open, &)
          client.start(uri.hostname, uri.port, use_ssl: uri.scheme == "https", open_timeout: open, read_timeout: PIECE,
                                               write_timeout: PIECE, max_retries: 0, &)
        end

        # Net::HTTP's time to connect is that of TLS's handshake as well: a server that never says a word must not be
        # waited for without end.
        def client
          @client ||= Class.new(Net::HTTP) do
            private

            def ssl_socket_connect(socket, timeout) = super(socket, timeout || PIECE)

            def connect = super.tap { @socket.extend(Bounds) }
          end
        end

        # An answer without end is left in the middle.
        def exchange(http, request)
          said = "".b
          response = catch(:enough) do
            http.request(request) do |answer|
              answer.read_body { |piece| throw :enough, answer if (said << piece).bytesize > READ }
            end
          end
          [response, said]
        end

        def request(uri, headers, body)
          request = Net::HTTP::Post.new(uri.request_uri, { "User-Agent" => "rperf/#{VERSION}", **headers.to_h })
          request.basic_auth(*[uri.user, uri.password].map { |text| URI.decode_uri_component(text.to_s) }) if uri.user
          request.body = body
          request
        end

        # Seconds, or a date.
        def retry_after(response)
          text = response["retry-after"].to_s
          return text.to_f if text.match?(/\A\d{1,9}\z/)

          [Time.httpdate(text) - Time.now, 0.0].max
        rescue ArgumentError
          -1.0
        end

        # What comes back may be in any encoding, and long.
        def line(text)
          text = text.byteslice(0, SHOWN).force_encoding(Encoding::UTF_8).scrub("?")
          text.tr("\r\n", " ").strip
        end
      end
    end
  end
end
