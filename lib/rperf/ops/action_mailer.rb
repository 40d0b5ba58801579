# frozen_string_literal: true

module Rperf
  module Ops
    # Mails that Action Mailer delivers: by the class of their mailer. The event that it sends doesn't know that as it
    # begins.
    module ActionMailer
      # Wraps the method of mailer classes to which Mail::Message leaves the delivery.
      module Delivery
        KIND = "mail"
        private_constant :KIND

        def deliver_mail(*)
          return super unless Native.main_ractor? && Native.ops? && (mailer = Builtin::NAME.bind_call(self))

          Named.call(KIND, mailer) { super }
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
