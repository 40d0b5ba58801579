# frozen_string_literal: true

require "json"

module Rperf
  module Web
    # Rack responses. Header names are in lower case, as Rack 3 wants them.
    module Answer
      HEADERS = {
        "content-security-policy" => "default-src 'none'; frame-ancestors 'none'",
        "x-content-type-options" => "nosniff",
        "x-frame-options" => "DENY",
        "referrer-policy" => "no-referrer",
        "cross-origin-opener-policy" => "same-origin",
        "cross-origin-resource-policy" => "same-origin",
        "cache-control" => "no-store"
      }.freeze
      private_constant :HEADERS

      class << self
        # One line for people.
        def text(status, line, headers = {})
          make(status, "text/plain; charset=utf-8", "#{line}\n", headers)
        end

        def json(status, data) = make(status, "application/json", JSON.generate(data))

        # Data that is compressed as it is, and that no other middleware should compress.
        def data(bytes, headers = {})
          make(200, "application/octet-stream", bytes, { "cache-control" => "no-store, no-transform", **headers })
        end

        def page(html, policy)
          make(200, "text/html; charset=utf-8", html, { "content-security-policy" => policy })
        end

        def nothing
          [204, HEADERS.dup, []]
        end

        private

        def make(status, type, body, headers = {})
          headers = { "content-type" => type, "content-length" => body.bytesize.to_s, **HEADERS, **headers }
          [status, headers, [body]]
        end
      end
    end
  end
  private_constant :Web
end
