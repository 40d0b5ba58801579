# frozen_string_literal: true

module Rperf
  # Tells the running session when YJIT begins to compile code: from then on most C
  # methods have no safepoint of their own (see leaf: of {Rperf.start}).
  module CompiledCode
    # In front of RubyVM::YJIT.enable.
    module Hook
      def enable(...)
        super.tap { Native.code_is_compiled if Ractor.main? && CompiledCode.enabled? }
      end
    end
    private_constant :Hook

    # Whether YJIT compiles code in this process.
    def self.enabled? = defined?(RubyVM::YJIT) ? RubyVM::YJIT.enabled? : false

    # Takes effect once, however often it is called.
    def self.watch
      RubyVM::YJIT.singleton_class.prepend(Hook) if defined?(RubyVM::YJIT)
    end
  end
  private_constant :CompiledCode
end
