# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "helper"

module Rperf
  # The port of this process: a socket at which `rperf ps` and other commands ask it. A native thread answers; nothing
  # here runs before the program ends.
  module Port
    class << self
      # @param folder [String, nil] where the socket is to be; nil: in the user's folder
      # @param tcp [Integer, nil] the number of a loopback port, 0 for any that is free; nil: there is to be none
      # @return [String] the socket's path; with `tcp`, the URL of that port
      # @raise [Rperf::Error] if there can't be a port
      def begin(folder, tcp = nil)
        place = Native.listen(folder, tcp, RUBY_VERSION)
        close_at_exit
        place
      end

      # As RPERF_LISTEN has it. A program that can't have a port runs without.
      # @param value [String] the variable's value
      def begin_as_asked(value)
        case place = Native.listen_place(value)
        when Integer then self.begin(nil, place)
        when String then self.begin(place)
        when true then self.begin(nil)
        end
      rescue Error, ArgumentError => e
        Message.say("#{Message.first_line(e)}; running without a port")
        nil
      end

      # In a forked child: opens one, if the parent had one.
      # @param ended [Boolean] whether the child takes the place of its parent, which has ended
      def begin_in_child(ended: false) = Native.listen_in_child(ended)

      # Removes the socket. Clients get the profile so far before.
      def close
        Helper.give_way(ends: true)
      ensure
        Native.unlisten
      end

      private

      # Blocks run in forked children, too.
      def close_at_exit
        return if @closes_at_exit

        @closes_at_exit = true
        at_exit { close }
      end
    end
  end
  private_constant :Port
end
