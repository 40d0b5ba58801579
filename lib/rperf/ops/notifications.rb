# frozen_string_literal: true

module Rperf
  module Ops
    # ActiveSupport::Notifications, to which libraries tell where their work begins and ends.
    module Notifications
      # @return [Module, nil] it, once it takes subscribers
      def self.find
        found = Loaded.module(:ActiveSupport, :Notifications)
        found if found.respond_to?(:subscribe) && found.respond_to?(:notifier) && found.notifier
      end

      # Those of one kind.
      class Subscriber
        # @param kind [String] of op
        # @param names [#of] whose `of` returns an event's op by the event's name and values, which are the same when it
        #   ends: a String, or nil for none
        def initialize(kind, names)
          @kind = kind
          @names = names
          freeze
        end

        # Where nobody else wants to know, an event is none then, and costs nothing. (ActiveSupport asks from 7.1 on.)
        def silenced?(_event) = !(Native.main_ractor? && Native.ops?)

        # Something begins.
        def start(event, _id, values)
          return unless Native.main_ractor? && Native.ops?

          name = @names.of(event, values)
          Native.start_op(@kind, name) if name
        end

        # It is over.
        def finish(event, _id, values)
          return unless Native.main_ractor? && Native.ops?

          Native.finish_op(@kind) if @names.of(event, values)
        end
      end
    end
  end
end
