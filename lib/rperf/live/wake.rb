# frozen_string_literal: true

module Rperf
  # Lets the port's thread wake a program in which all threads wait, by calling the function with which Ruby handles
  # signals. Which one that is shows while a signal is trapped that nobody uses. The trap is gone at once.
  module Wake
    TRAP = Signal.method(:trap)
    NOTHING = proc {}
    private_constant :TRAP, :NOTHING

    class << self
      def prepare
        number = Native.unused_signal or return
        before = TRAP.call(number, NOTHING)
        begin
          Native.learn_handler(number)
        ensure
          TRAP.call(number, before)
        end
      end
    end
  end
  private_constant :Wake
end
