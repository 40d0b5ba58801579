# frozen_string_literal: true

module Rperf
  # Lines for the user.
  module Message
    # One line. Goes past $stderr, which is the program's.
    def self.say(text)
      # Other Ractors may not call Native.
      Native.say(text) if Ractor.main?
    end

    # @return [String] of an error's message, which may have several lines
    def self.first_line(error) = error.message.lines.first.to_s.chomp
  end
  private_constant :Message
end
