# frozen_string_literal: true

module Rperf
  module Ops
    # Templates, partials, collections and layouts that Action View renders: by the path of their file, from which the
    # directory of the program is left out natively. What has no file says what it is, such as `inline template`.
    module ActionView
      KIND = "render"
      EVENTS = %w[template partial collection layout].map { |it| "render_#{it}.action_view".freeze }.freeze
      private_constant :KIND, :EVENTS

      class << self
        def find = Notifications.find

        def install(notifications)
          subscriber = Notifications::Subscriber.new(KIND, self)
          EVENTS.each { |event| notifications.subscribe(event, subscriber) }
        end

        # A collection of objects with templates of their own has none.
        def of(_event, values)
          path = values[:identifier] if values.instance_of?(Hash)
          path if path.is_a?(String)
        end
      end
    end
  end
end
