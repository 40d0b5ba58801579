# frozen_string_literal: true

# Pauses of a session.
module Rperf
  class << self
    # Profiles nothing, on any thread, until {Rperf.resume}, or, with a block, while the block runs. Several such blocks
    # can run at a time: the pause lasts until the last one ends.
    #
    # Does nothing but run the block when profiling is off, and outside of the main Ractor.
    #
    # @return the block's value; without a block whether it wasn't paused before by such a call
    # @raise [Rperf::Error] in a session that counts chosen methods
    # @example
    #   Rperf.trace { work; Rperf.pause { report }; work }
    def pause
      is_on = Native.main_ractor? && running?
      return is_on && Native.hold(true) unless block_given?
      return yield unless is_on

      undo = []
      begin
        Native.pause(undo)
        yield
      ensure
        # One call of C: no interrupt can come before it has done its work.
        Native.unpause(undo)
      end
    end

    # Ends the pause that {Rperf.pause} without a block has begun.
    #
    # @return [Boolean] whether there was one
    # @raise [Rperf::Error] in a session that counts chosen methods
    def resume = Native.main_ractor? && running? && Native.hold(false)
  end
end
