# frozen_string_literal: true

module Rperf
  module Web
    # Sends what `rperf push` and {Rperf.push} have: by Ruby's HTTP and TLS, through the proxy of the environment.
    module Post
      # Seconds to connect, and for each piece that goes or comes.
      OPEN = 5
      PIECE = 10
      # Seconds for all of it, once there is a TCP connection; and pieces of an answer, which have 16 KB at most.
      WHOLE = 60
      PIECES = 500
      # Bytes of an answer that are read, and that are shown.
      READ = 1 << 16
      SHOWN = 200
      private_constant :OPEN, :PIECE, :WHOLE, :PIECES, :READ, :SHOWN

      # Bounds what Net::HTTP waits for a connection's socket: TLS may wait for many pieces of one record, and a server
      # may take and send a byte now and then.
      module Deadline
        def self.set(socket, at)
          socket.extend(self)
          socket.instance_variable_set(:@rperf_until, at)
        end

        def wait_readable(timeout = PIECE) = rperf_waited(timeout) { |seconds| super(seconds) }

        def wait_writable(timeout = PIECE) = rperf_waited(timeout) { |seconds| super(seconds) }

        private

        # Nothing, as for a wait that was too long, if there is no time left.
        def rperf_waited(timeout)
          left = @rperf_until - Post.now
          yield [left, timeout].min if left.positive?
        end
      end
      private_constant :Deadline

      # Bounds an answer: its head may be without end.
      module Pieces
        NO_END = "its answer has no end"
        private_constant :NO_END

        # A line of the head. Some versions of Net::HTTP refuse long ones by themselves, with an ArgumentError, which
        # would seem to be the request's.
        def readuntil(...)
          super.tap { |line| raise IOError, NO_END if line.bytesize > READ }
        end

        private

        def rbuf_fill
          @rperf_pieces = (@rperf_pieces || 0) + 1
          raise IOError, NO_END if @rperf_pieces > PIECES

          super
        end
      end
      private_constant :Pieces

      class << self
        # @param headers [Array<Array(String, String)>]
        # @param open [Integer, nil] seconds to connect; nil: TCP as long as the system tries, and without the thread
        #   that Timeout leaves in the process, unless TLS goes through a proxy
        # @return [Array(Integer, String, String, Float)] HTTP's status, or 0 if there is none; a line of what was said,
        #   and all of it; and the seconds after which to come again, or -1
        def call(url, headers, body, open: OPEN)
          load(url)
          uri = URI(url)
          response, said = connected(uri, open) { |http| exchange(http, request(uri, headers, body)) }
          [response.code.to_i, line(elsewhere(response) || said), said, retry_after(response)]
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

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        private

        def connected(uri, open, &)
          client.start(uri.hostname, uri.port, use_ssl: uri.scheme == "https", open_timeout: open, read_timeout: PIECE,
                                               write_timeout: PIECE, max_retries: 0, &)
        end

        # Net::HTTP's time to connect is that of TLS's handshake as well: a server that never says a word must not be
        # waited for without end. It has none for all that a proxy says before that.
        def client
          @client ||= Class.new(Net::HTTP) do
            private

            def ssl_socket_connect(socket, timeout)
              @rperf_until = Post.now + WHOLE
              super(socket, [timeout || PIECE, WHOLE].min)
            end

            def connect
              proxy? && use_ssl? ? Timeout.timeout(WHOLE, Net::OpenTimeout) { super } : super
              Deadline.set(@socket.io.to_io, @rperf_until || (Post.now + WHOLE))
              @socket.extend(Pieces)
            end
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

        # Where to send it instead: it is for the user to decide, since the headers may have a secret.
        def elsewhere(response)
          location = response["location"].to_s
          "leads to #{location}" if response.code.start_with?("3") && !location.empty?
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
