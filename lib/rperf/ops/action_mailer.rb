# frozen_string_literal: true

require_relative "loaded"

module Rperf
  module Ops
    # Mails that Action Mailer delivers: by the class of their mailer. The event that it sends doesn't know that as it
    # begins.
    module ActionMailer
      # Wraps the method of mailer classes to which Mail::Message leaves the delivery.
      module Delivery
        KIND = "mail"
        NAME = Module.instance_method(:name)
        private_constant :KIND, :NAME

        def deliver_mail(*)
          return super unless Native.main_ractor? && Native.ops? && (mailer = NAME.bind_call(self))

          undo = []
          begin
            Native.begin_op(undo, KIND, mailer)
            super
          ensure
            Native.end_op(undo)
          end
        end
      end
      private_constant :Delivery

      def self.find
        found = Loaded.module(:ActionMailer, :Base)
        found if found.respond_to?(:deliver_mail)
      end

      def self.install(base) = base.singleton_class.prepend(Delivery)
    end
  end
end
