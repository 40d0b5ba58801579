# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "helper"
require_relative "wake"

module Rperf
  # The port of this process: a socket at which `rperf ps` and other commands ask it. A native thread answers; nothing
  # here runs before the program ends.
  module Port
    class << self
      # What begins again in forked children, once they have ports: it has `begin_in_child`.
      attr_writer :client

      # @param directory [String, nil] where the socket is to be; nil: in the user's directory
      # @param tcp [Integer, nil] the number of a loopback port, 0 for any that is free; nil: there is to be none
      # @param wake [Boolean] whether the program may be woken where all threads wait
      # @param helper [Boolean] whether there is a thread for answers all the time
      # @param inherited [Boolean] whether the program that began this one has been told the same
      # @return [String] the socket's path; with `tcp`, the URL of that port
      # @raise [Rperf::Error] if there can't be a port
      def begin(directory, tcp = nil, wake: true, helper: false, inherited: false)
        place, line = Native.listen(directory, tcp, RUBY_VERSION, inherited)
        Message.say(line) if line
        return place if @has_begun

        @has_begun = true
        # Blocks run in forked children, too.
        at_exit { close }
        Wake.prepare if wake
        stay if helper
        place
      end

      # As RPERF_LISTEN and the like have it. A program that can't have a port runs without.
      # @param variables [#[]] their values, by names without RPERF_
      def begin_as_asked(variables)
        place, wake, helper = %w[LISTEN LISTEN_WAKE LISTEN_HELPER].map { |key| setting(key, variables[key]) }
        return unless place

        directory = place if place.is_a?(String)
        tcp = place if place.is_a?(Integer)
        self.begin(directory, tcp, wake: wake != false, helper:, inherited: true)
      rescue Error, ArgumentError => e
        Message.say("#{Message.first_line(e)}; running without a port")
        nil
      end

      # In a forked child: opens one, if the parent had one.
      # @param ended [Boolean] whether the child takes the place of its parent, which has ended
      def begin_in_child(ended: false)
        Native.listen_in_child(ended)
        Helper.stay_in_child
        @client&.begin_in_child
      end

      # Removes the socket. Clients get the profile so far before. Whatever the program does afterwards, as in other
      # blocks of at_exit, may open a new one, which is closed then.
      def close
        Helper.give_way(ends: true)
      ensure
        @has_begun = false
        Native.unlisten
      end

      private

      # The port is open, and answers without a helper, too.
      def stay
        Helper.stay
      rescue Error => e
        Message.say("#{Message.first_line(e)}; running without it")
      end

      def setting(key, text) = text && Native.listen_setting(key, text)
    end
  end
  private_constant :Port
end
