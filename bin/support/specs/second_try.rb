# frozen_string_literal: true

require_relative "job"

module Specs
  # Runs the few examples that failed once more, with nothing beside them. A busy machine makes an example fail now and
  # then that measures what it can't hold still; an error of ours fails again. What passes is told with its failure.
  class SecondTry
    # More failures than these are no accident.
    MOST = 3
    # How often each has to pass.
    TIMES = 2

    # @param jobs [Array<Job>] that have run
    def initialize(jobs)
      @jobs = jobs
      @ids = jobs.flat_map(&:failed_ids)
    end

    # Whether there is a failure, and each is one of an example that RSpec came to the end of.
    def worth_it? = @ids.any? && @ids.size <= MOST && @jobs.all?(&:whole?)

    # @yield each job that has run
    def run
      tries = Array.new(TIMES) do |number|
        Job.new("second try #{number + 1}", [], @ids, @ids).tap { |job| yield job.run }
      end
      lost = tries.flat_map { |job| job.whole? ? job.failed_ids : @ids }
      @jobs.each { |job| job.pass(@ids - lost) }
    end
  end
end
