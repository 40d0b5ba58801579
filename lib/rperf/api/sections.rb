# frozen_string_literal: true

require_relative "../errors"

# Sections of a deferred session.
module Rperf
  class << self
    # Profiles the block in a session that was started with `defer: true`. Time counts,
    # that of all threads, while at least one such block runs; in between the program
    # runs as if it were not profiled. In other sessions it only puts labels on.
    #
    # A block that never ends, as that of a fiber that nobody resumes any more, counts on.
    # Outside of the main Ractor it does nothing but run the block.
    #
    # @param labels [Hash{Symbol, String => Object}] for the block's samples, as for {Rperf.label}
    # @return the block's value
    # @raise [ArgumentError] without a block
    # @raise [Rperf::Error] if profiling is off
    # @example
    #   Rperf.start(defer: true, mode: :wall)
    #   Rperf.profile(endpoint: "/users") { handle_request }
    def profile(**labels)
      raise ArgumentError, "Rperf.profile needs a block" unless block_given?
      return yield unless Native.main_ractor?
      raise Error, "profiling is off; call Rperf.start (with defer: true) first" unless running?

      undo = []
      begin
        Native.enter(undo, labels.empty? ? nil : labels, true)
        yield
      ensure
        # One call of C: no interrupt can come before it has done its work.
        Native.leave(undo)
      end
    end
  end
end
