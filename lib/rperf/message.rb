# frozen_string_literal: true

module Rperf
  # Lines for the user.
  module Message
    # One line. Goes past $stderr, which is the program's.
    def self.say(text)
      # Other Ractors may not touch STDERR.
      STDERR.write("rperf: #{text}\n") if Ractor.main?
    rescue StandardError
      nil # The program has closed its stderr, or put its own methods on it.
    end

    # @return [String] of an error's message, which may have several lines
    def self.first_line(error) = error.message.lines.first.to_s.chomp
  end
  private_constant :Message
end
