# frozen_string_literal: true

# Labels of samples: a program's own words for its present work.
module Rperf
  class << self
    # Puts labels on the samples of the block, or, without one, on all that follow
    # until they are changed. They are added to those that are there; nil takes one away.
    # When the block ends, however it does, all are as they were before.
    #
    # Labels belong to a thread, and in it to a fiber: a fiber begins with those of the
    # fiber that made it (an Enumerator's, with those of where `next` was called first),
    # and what it sets itself is its own. A new thread begins with none.
    #
    # Does nothing but run the block when profiling is off, and outside of the main Ractor.
    #
    # @param labels [Hash{Symbol, String => Object}] values are shown by their to_s
    # @return the block's value; without a block the labels as {Rperf.labels}
    # @example
    #   Rperf.label(request: id, endpoint: "/users") { handle_request }
    def label(**labels)
      return block_given? ? yield : {} unless Native.main_ractor? && Native.running?
      return change_labels(labels) unless block_given?

      undo = []
      begin
        Native.enter(undo, labels, false)
        yield
      ensure
        # One call of C: no interrupt can come before it has done its work.
        Native.leave(undo)
      end
    end

    # @return [Hash{Symbol => Object}] the labels that samples get here; frozen
    def labels = (Native.labels if Native.main_ractor? && Native.running?) || NO_LABELS

    private

    def change_labels(labels)
      Native.enter([], labels, false)
      self.labels
    end
  end

  NO_LABELS = {}.freeze
  private_constant :NO_LABELS
end
