# frozen_string_literal: true

require_relative "../rperf"

module Rperf
  # A request or a job on its way through our middleware. Whatever fails here, the
  # program's own work is done, once, and its exceptions pass as they are.
  module Work
    class << self
      # Runs the block with labels, and as a section of a deferred session.
      #
      # @param labels [Hash{Symbol => String}]
      # @return the block's value
      def run(labels)
        value = nil
        begun = ended = false
        Sections.run(labels) do
          begun = true
          value = yield
          ended = true
          value
        end
      rescue StandardError => e
        raise if begun && !ended

        complain(e)
        ended ? value : yield
      end

      # @return what the block makes; nil if it fails
      def attempt
        yield
      rescue StandardError => e
        complain(e)
      end

      # @return [Boolean] whether labels and sections mean anything here and now
      def profiled? = Labels.heeded?

      private

      # Once: a fault that each request has would fill the log.
      def complain(error)
        return if @complained

        @complained = true
        STDERR.write("rperf: a request or job couldn't be labelled, and runs without: " \
                     "#{error.message} (#{error.class})\n")
        nil
      rescue StandardError
        nil # Nothing to write to, or an exception without a message: the work goes on.
      end
    end
  end
  private_constant :Work
end
