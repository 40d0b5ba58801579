# frozen_string_literal: true

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
      return yield unless Ractor.main?
      raise Error, "profiling is off; call Rperf.start (with defer: true) first" unless Native.running?

      section = Section.new
      begin
        section.begin(labels)
        yield
      ensure
        # One call of C: no interrupt can come before it has done its work.
        section.end
      end
    end
  end

  # A part of a thread's work that is profiled: what {Rperf.profile} and our middleware do
  # around it. Ends also if it has begun in part only.
  class Section
    def initialize
      # Notes in which session it was begun.
      @token = []
      @labelled = false
      @outer = nil
    end

    # Does nothing if profiling is off.
    def begin(labels)
      unless labels.empty? || !Native.running?
        @outer = Native.label_set
        @labelled = true
        Native.label_set = Native.new_label_set(@outer, labels)
      end
      Native.enter_section(@token)
    end

    def end = Native.leave_section(@token, @labelled, @outer)
  end
  private_constant :Section
end
