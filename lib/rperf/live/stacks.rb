# frozen_string_literal: true

require_relative "../builtin"

module Rperf
  # What Ruby says of threads, for the port. Called on the helper, which the extension makes for each answer.
  module Stacks
    # The methods as they are now: a program may put its own in their place.
    RACTORS = Ractor.method(:count)
    NAME, ALIVE, STOPPED, STATUS, NATIVE_ID, LOCATIONS, KEYS =
      %i[name alive? stop? status native_thread_id backtrace_locations keys].map { |name| Thread.instance_method(name) }
    LIST, MAIN = %i[list main].map { |name| Thread.method(name) }
    private_constant :RACTORS, :NAME, :ALIVE, :STOPPED, :STATUS, :NATIVE_ID, :LOCATIONS, :KEYS, :LIST, :MAIN
    @facts = []

    class << self
      # @param with_line [Boolean] whether the line of the topmost frame is wanted
      # Makes no objects where a thread waits, as most do: with thousands of them, a collection would come each time.
      # @return [Array, nil] its name, status, native number and that line, until the next call; nil if it has ended
      def facts(thread, with_line)
        status = status_of(thread) or return
        line = LOCATIONS.bind_call(thread, 0, 1)&.first&.lineno if with_line
        @facts[0] = NAME.bind_call(thread)
        @facts[1] = status
        @facts[2] = NATIVE_ID.bind_call(thread)
        @facts[3] = line
        @facts
      end

      # @return [Integer] how many there are beside this one, whose threads it can't see
      def other_ractors = RACTORS.call - 1

      # @return [Array] of each thread itself, its name, and those of its local variables
      def locals
        main = MAIN.call
        LIST.call.map do |thread|
          name = NAME.bind_call(thread) || (Builtin::SAME.bind_call(thread, main) ? "main" : "")
          [thread, name, KEYS.bind_call(thread)]
        end
      end

      private

      def status_of(thread)
        STOPPED.bind_call(thread) && ALIVE.bind_call(thread) ? "sleep" : STATUS.bind_call(thread)
      end
    end
  end
  private_constant :Stacks
end
