# frozen_string_literal: true

module Rperf
  # What Ruby says of threads, for the port. Called on the helper, which the extension makes for each answer.
  module Stacks
    # The methods as they are now: a program may put its own in their place.
    RACTORS = Ractor.method(:count)
    NAME, STATUS, NATIVE_ID, LOCATIONS =
      %i[name status native_thread_id backtrace_locations].map { |name| Thread.instance_method(name) }
    private_constant :RACTORS, :NAME, :STATUS, :NATIVE_ID, :LOCATIONS

    class << self
      # @param with_line [Boolean] whether the line of the topmost frame is wanted
      # @return [Array, nil] its name, status, native number and that line; nil if it has ended
      def facts(thread, with_line)
        status = STATUS.bind_call(thread) or return
        line = LOCATIONS.bind_call(thread, 0, 1)&.first&.lineno if with_line
        [NAME.bind_call(thread), status, NATIVE_ID.bind_call(thread), line]
      end

      # @return [Integer] how many there are beside this one, whose threads it can't see
      def other_ractors = RACTORS.call - 1
    end
  end
  private_constant :Stacks
end
