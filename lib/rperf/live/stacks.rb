# frozen_string_literal: true

module Rperf
  # The stacks of all threads, for the port. Called on the helper, a thread that the extension makes for each answer.
  module Stacks
    # Frames of a stack; those beyond are left out at its root.
    LIMIT = 1000
    # Threads after which others may run.
    STRETCH = 8
    # The methods as they are now: a program may put its own in their place.
    LIST = Thread.method(:list)
    RACTORS = Ractor.method(:count)
    NAME, STATUS, NATIVE_ID, LOCATIONS =
      %i[name status native_thread_id backtrace_locations].map { |name| Thread.instance_method(name) }
    private_constant :LIMIT, :STRETCH, :LIST, :RACTORS, :NAME, :STATUS, :NATIVE_ID, :LOCATIONS

    class << self
      # @return [Array(Array<Array>, Integer)] of each thread: itself, its name, status, native number and frames; and
      #   how many Ractors there are beside this one, whose threads it can't see
      def take
        helper = Thread.current
        threads = LIST.call.reject { |thread| thread.equal?(helper) }
        rows = threads.each_slice(STRETCH).flat_map do |some|
          Thread.pass
          some.filter_map { |thread| row(thread) }
        end
        [rows, RACTORS.call - 1]
      end

      private

      def row(thread)
        status = STATUS.bind_call(thread) or return
        frames = LOCATIONS.bind_call(thread, 0, LIMIT) || []
        parts = frames.flat_map { |frame| [frame.label, frame.absolute_path || frame.path, frame.lineno || 0] }
        [thread, NAME.bind_call(thread), status, NATIVE_ID.bind_call(thread), parts]
      end
    end
  end
  private_constant :Stacks
end
