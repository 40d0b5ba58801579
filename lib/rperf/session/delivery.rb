# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "session"

module Rperf
  # Delivers the profile of a program that is profiled as a whole. Nothing here may change how the program runs or
  # ends: every error becomes one line on stderr.
  #
  # A signal handler on the main thread can raise at any method return, and nothing can mask it. So each step records
  # that it is done before it returns. After an interruption the remaining steps run, and then it is raised again.
  module Delivery
    # How often delivery is retried after an exception that is not a signal's.
    ATTEMPTS = 3
    private_constant :ATTEMPTS

    class << self
      # The program ends: the profile is delivered, once.
      def finish
        deliver do |session, profiles|
          session.report(:ending) if Native.running?
          Native.stop_into(profiles)
        end
      ensure
        Session.of_whole_program&.leave
      end

      # The program may run on: the profile so far is delivered.
      # @param tables [Boolean] whether the page is printed too: not if it's sure to be printed later
      def until_now(tables: true)
        deliver(tables:) { |_, profiles| profiles.concat([Native.snapshot(false)].compact) }
      end

      private

      # The block puts the profile into the Array that it gets. Nothing may run outside of `begin`: a signal there would
      # end the delivery.
      def deliver(tables: true, &)
        profiles = []
        attempts = 0
        delivered = interruption = nil
        begin
          Thread.handle_interrupt(Object => :never) { delivered ||= deliver_rest(profiles, tables, &) }
        rescue Error => e
          complain(e)
        rescue SystemExit, SignalException => e
          interruption ||= e
          retry
        rescue Exception => e # rubocop:disable Lint/RescueException -- the program's own end goes on
          interruption ||= e
          retry if delivered || (attempts += 1) < ATTEMPTS
          return complain(e)
        end
        raise interruption if interruption
      end

      # Runs the remaining steps; called again after an interruption.
      def deliver_rest(profiles, tables)
        if (session = Session.of_whole_program)
          yield session, profiles if profiles.empty?
          session.destination.deliver(profiles.first, tables:) unless profiles.empty?
        end
        true
      end

      def complain(error) = Message.say("can't deliver the profile: #{error.message} (#{error.class})")
    end
  end
  private_constant :Delivery
end
