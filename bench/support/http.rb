# frozen_string_literal: true

module Bench
  # What clients of benchmarks need of HTTP: a client of its own would cost more than what is measured.
  module HTTP
    # Reads an answer whose first line is `status`, on a connection that stays open.
    # @raise [RuntimeError] if it isn't a success
    def self.read(socket, status)
      raise status.inspect unless status&.start_with?("HTTP/1.1 200")

      length = 0
      while (line = socket.gets("\r\n").chomp) != ""
        length = Integer(line[/\d+/]) if line.start_with?(/content-length/i)
      end
      socket.read(length)
    end
  end
end
