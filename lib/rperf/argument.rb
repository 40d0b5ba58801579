# frozen_string_literal: true

require_relative "builtin"

module Rperf
  # Checks of arguments, of whatever class they are.
  module Argument
    class << self
      # `value.is_a?(type)`, also for an object without the methods of Object.
      def a?(value, type)
        case value
        when type then true
        else false
        end
      end

      def one_of(name, value, allowed)
        return value if allowed.any? { |item| item.equal?(value) }

        reject(name, value, allowed.map(&:inspect).join(" or "))
      end

      # @raise [ArgumentError] always
      def reject(name, value, allowed)
        raise ArgumentError, "#{name}: must be #{allowed}, not #{shown(value)}"
      end

      # @return [String] any object as a short piece of a message
      def shown(value)
        text = value.inspect.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
        text.size > 80 ? "#{text[0, 77]}..." : text
      rescue StandardError
        # No inspect, or one that fails; this works for a BasicObject too.
        "an object of #{Builtin::CLASS.bind_call(value)}"
      end
    end
  end
  private_constant :Argument
end
