# frozen_string_literal: true

module Rperf
  module Ops
    # Libraries that are there, by the names of their modules.
    module Loaded
      DEFINED = Module.instance_method(:const_defined?)
      AUTOLOAD = Module.instance_method(:autoload?)
      GET = Module.instance_method(:const_get)
      private_constant :DEFINED, :AUTOLOAD, :GET

      # @param path [Array<Symbol>] the names, from the outermost module in
      # @return [Module, nil] nothing that would have to be loaded first
      def self.module(*path) = path.inject(Object) { |scope, name| scope && within(scope, name) }

      def self.within(scope, name)
        return unless DEFINED.bind_call(scope, name, false) && !AUTOLOAD.bind_call(scope, name, false)

        # The program's may be any object.
        case found = GET.bind_call(scope, name, false)
        when Module then found
        end
      end
      private_class_method :within
    end
  end
end
