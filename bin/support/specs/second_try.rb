# frozen_string_literal: true

module Specs
  # Runs the processes with a few failures once more, with the same examples in the same order, but with nothing beside
  # them. A busy machine makes an example fail now and then that measures what it can't hold still. What passes then is
  # told with its failure.
  class SecondTry
    # More failures than these are no accident.
    MOST = 3
    # How often all have to pass.
    TIMES = 2

    # @param jobs [Array<Job>] that have run
    def initialize(jobs)
      @failed = jobs.reject(&:good?)
    end

    # Whether there is a failure, and each is one of an example that came to its end without a crash.
    def worth_it? = @failed.any? && @failed.sum { |job| job.failed_ids.size } <= MOST && @failed.all?(&:mendable?)

    # @yield each job that has run
    def run(&)
      @failed.each do |job|
        passes = (1..TIMES).all? { |number| job.again(number).run.tap(&).good? }
        job.pass if passes
      end
    end
  end
end
