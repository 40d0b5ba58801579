# frozen_string_literal: true

require_relative "../suite"

module Rperf
  module Suite
    # The runs of FactoryBot's factories, which it tells to ActiveSupport::Notifications as they begin and end. Each has
    # an account; what a factory takes that another one calls is kept apart.
    class Factories
      EVENT = "factory_bot.run_factory"
      # The fiber-local variable with the runs that go on, the innermost last.
      RUNS = :__rperf_factories__
      private_constant :EVENT, :RUNS

      # A run that goes on.
      class Run
        attr_reader :payload, :name, :opened, :session, :is_within_itself
        attr_accessor :nested_ns

        def initialize(payload, name, session, is_within_itself)
          @payload = payload
          @name = name
          @session = session
          @is_within_itself = is_within_itself
          @opened = []
          @nested_ns = 0
        end
      end
      private_constant :Run

      # Takes effect once, and where there is ActiveSupport.
      def self.watch
        return if @watched || !defined?(::ActiveSupport::Notifications)

        @watched = true
        ::ActiveSupport::Notifications.subscribe(EVENT, new)
      end

      # A run begins.
      def start(_name, _id, payload)
        return unless Suite.recorded?

        Suite.attempt { begin_run(payload) }
      end

      # A run has ended, or was given up.
      def finish(_name, _id, payload)
        runs = Builtin::CURRENT_THREAD.call[RUNS]
        Suite.attempt { end_run(runs, payload) } if runs
      end

      private

      def begin_run(payload)
        session = Native.samples or return
        # Other objects would have to be asked what they are called.
        return unless payload in { name: String | Symbol => name, strategy: String | Symbol => strategy }

        name = "#{name} (#{strategy})"
        runs = (Builtin::CURRENT_THREAD.call[RUNS] ||= [])
        run = Run.new(payload, name, session, runs.any? { |it| it.name == name })
        Native.open_account(run.opened)
        runs << run
      end

      # Runs further in that nobody has told the end of are over, too.
      def end_run(runs, payload)
        return unless runs.any? { |it| it.payload.equal?(payload) }

        run = runs.pop
        until run.payload.equal?(payload)
          Native.close_account(run.opened)
          run = runs.pop
        end
        took = Native.end_factory(run.opened, run.session, run.name, run.nested_ns, runs.empty?, run.is_within_itself)
        runs.last.nested_ns += took if took && !runs.empty?
      end
    end
  end
end
