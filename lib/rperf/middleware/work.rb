# frozen_string_literal: true

require_relative "../../rperf"

module Rperf
  # A request or a job that our middleware wraps. Whatever fails here, the program's own
  # work runs exactly once, and its exceptions pass unchanged.
  module Work
    # An exception from another thread (Thread#raise, Timeout with a class of its own) must
    # not be taken for one of ours: it waits until we are done.
    LATER = { StandardError => :never }.freeze
    # Nothing may interrupt an end.
    LAST = { Object => :never }.freeze
    # Not where the program can't be profiled, but must run.
    HAS_NATIVE = Rperf.const_defined?(:Native)
    # The fiber-local variable with the name of the present job and its account.
    JOB = :__rperf_job__
    private_constant :LATER, :LAST, :JOB

    class << self
      # Runs the block with labels, and as a section of a deferred session. Where requests and jobs are judged, it
      # is one.
      #
      # @param labels [Hash{Symbol => String}, nil]
      # @return the block's value
      def run(labels)
        undo = []
        # Most of the time nothing of it can fail: then there is nothing to guard, which takes longer than all the rest.
        Native.enter_at_once(undo, labels) || enter(undo, labels)
        yield
      ensure
        Native.leave_at_once(undo) || leave(undo)
      end

      # Begins a request or a job, as {run} does, where something of it can fail.
      def enter(undo, labels) = attempt { Native.enter_request(undo, labels) }

      # Ends it.
      def leave(undo) = attempt(LAST) { Native.leave_request(undo) }

      # Runs the block with labels, and with an account, unless other middleware has opened one for this job.
      #
      # @param name [String] the job's class
      # @yieldparam account [Account]
      # @param job [Proc]
      # @return what `job` returns
      def account_of_job(name, job)
        outer = Thread.current[JOB]
        return run({ job: name }, &job) if outer&.first == name && outer.last.open?

        Accounts.run do |account|
          account.name = name
          Thread.current[JOB] = [name, account]
          run({ job: name }, &job)
        ensure
          Thread.current[JOB] = outer
          yield account if block_given?
        end
      end

      # @param failure [String] what is told if it fails
      # @return what the block makes; nil if it fails
      def attempt(interrupts = LATER, failure: "couldn't be labelled, and runs without")
        Thread.handle_interrupt(interrupts) do
          yield
        rescue StandardError => e
          complain(failure, e)
        end
      end

      # @return [Boolean] whether requests and jobs are profiled, or get accounts
      def wanted? = HAS_NATIVE && Native.wanted?

      # @return [Boolean] whether requests and jobs get accounts
      def accounted? = HAS_NATIVE && Native.accounted?

      # @return [Boolean] whether there can be accounts
      def accountable? = HAS_NATIVE && Native.main_ractor?

      # @return [Boolean] whether labels and sections mean anything here and now
      def profiled? = HAS_NATIVE && Native.profiled?

      private

      # Once: the same fault in every request would fill the log.
      def complain(failure, error)
        return if @complained

        @complained = true
        Stderr.write("rperf: a request or job #{failure}: #{error.message} (#{error.class})\n")
        nil
      rescue StandardError
        nil # Nothing to write to, or an exception without a message: the work goes on.
      end
    end
  end
  private_constant :Work
end
