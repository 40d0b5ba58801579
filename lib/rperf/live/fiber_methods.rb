# frozen_string_literal: true

require_relative "../builtin"

module Rperf
  # Ruby's methods by which fibers are listed, as they are when the gem is loaded: a program may put its own in their
  # place.
  module FiberMethods
    class << self
      # @return [UnboundMethod, nil] Ruby's, below those that the program has put before it; nil if it has replaced it
      def original(type, name)
        method = Builtin::INSTANCE_METHOD.bind_call(type, name)
        method = method.super_method until method.nil? || original?(method, type)
        method
      end

      # @return [Boolean] whether the type has it from Ruby
      def original?(method, type)
        file, = method.source_location
        Builtin::SAME.bind_call(method.owner, type) && (file.nil? || file.start_with?("<internal:"))
      end
    end

    ALIVE, TO_S, LOCATIONS = %i[alive? to_s backtrace_locations].map { |name| original(Fiber, name) }
    CLASS, SINGLETON_CLASS = %i[class singleton_class].map { |name| original(Kernel, name) }
    CURRENT = original(Fiber.singleton_class, :current)
    EACH_OBJECT = original(ObjectSpace.singleton_class, :each_object)
    ALL = [ALIVE, TO_S, LOCATIONS, CLASS, SINGLETON_CLASS, CURRENT, EACH_OBJECT].freeze
  end
  private_constant :FiberMethods
end
