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

        def deliver_mail(*, &)
          unless Native.main_ractor? && Native.ops? && (mailer = Builtin::NAME.bind_call(self))
            return __rperf_deliver_mail(*, &)
          end

          Named.call(KIND, mailer) { __rperf_deliver_mail(*, &) }
        end
      end
      private_constant :Delivery

      def self.find
        found = Loaded.module(:ActionMailer, :Base)
        found if found.respond_to?(:deliver_mail)
      end

      def self.install(base) = Wrapped.install(base.singleton_class, Delivery)
    end
  end
end
