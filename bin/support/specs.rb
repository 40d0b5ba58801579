# frozen_string_literal: true

# specs.rb [--vm]: runs the specs, files in several processes at once. Examples that are `alone: true` measure times:
# they run afterwards, in one process and with nothing beside it. With --vm only those that are `vm: true` run.
#
# RPERF_TEST_WORKERS says how many processes there are; else there is one for each core. All results are in
# tmp/results.tsv afterwards.

require "etc"
require "fileutils"
require_relative "specs/plan"
require_relative "specs/summary"

# What is run, and in which order.
module Specs
  module_function

  def run(arguments)
    FileUtils.rm_rf(DIRECTORY)
    FileUtils.mkdir_p(DIRECTORY)
    FileUtils.rm_f(RESULTS)
    plan = Plan.new(arguments.include?("--vm") ? ["~vm:false"] : [])
    jobs = together(plan.jobs) + alone(plan.alone)
    plan.remember(jobs)
    summary = Summary.new(jobs)
    summary.write(RESULTS)
    summary.print
    exit(summary.good?)
  end

  def workers
    given = ENV.fetch("RPERF_TEST_WORKERS", "")
    return Etc.nprocessors.clamp(1, 8) if given.empty?

    number = Integer(given, exception: false)
    number&.positive? ? number : abort("RPERF_TEST_WORKERS must be a number of processes, not '#{given}'")
  end

  # Each worker takes the next file when it is done with one.
  def together(jobs)
    queue = Queue.new(jobs).close
    threads = Array.new(workers) do
      Thread.new { while (job = queue.pop) do say(job.run) end }
    end
    threads.each(&:join)
    jobs
  end

  def alone(job)
    job ? [job.tap { |it| say(it.run) }] : []
  end

  def say(job)
    $stdout.write("#{job.line}\n")
    $stdout.flush
  end
end

Specs.run(ARGV) if $PROGRAM_NAME == __FILE__
