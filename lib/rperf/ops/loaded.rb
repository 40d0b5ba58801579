# frozen_string_literal: true

require_relative "../builtin"

module Rperf
  module Ops
    # Libraries that are there, by the names of their modules.
    module Loaded
      # @param path [Array<Symbol>] the names, from the outermost module in
      # @return [Module, nil] nothing that would have to be loaded first
      def self.module(*path) = path.inject(Object) { |scope, name| scope && within(scope, name) }

      def self.within(scope, name)
        return unless Builtin::HAS_CONST.bind_call(scope, name, false)
        return if Builtin::AUTOLOAD.bind_call(scope, name, false)

        # The program's may be any object.
        case found = Builtin::CONST_GET.bind_call(scope, name, false)
        when Module then found
        end
      end
      private_class_method :within
    end
  end
end
