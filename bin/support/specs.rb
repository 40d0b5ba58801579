# frozen_string_literal: true

# specs.rb [--vm] [FILE...]: runs the specs, or those of these files, in several processes at once. Examples that are
# `alone: true` measure times: they run afterwards, in one process and with nothing beside it. Up to three examples that
# failed have a second try then. With --vm only those that are `vm: true` run.
#
# RPERF_TEST_WORKERS says how many processes there are, RPERF_TEST_LIMIT how many seconds each may take. With
# RPERF_EMULATED=1 those that are `emulated: false` don't run. All results are in tmp/results.tsv afterwards, and what
# has failed is in the file that RPERF_FAILURES names. A signal that ends this ends what it has started, too.

Encoding.default_external = Encoding::UTF_8

require "fileutils"
require_relative "specs/interruption"
require_relative "specs/plan"
require_relative "specs/second_try"
require_relative "specs/settings"
require_relative "specs/summary"

# What is run, and in which order.
module Specs
  module_function

  def run(arguments)
    FileUtils.mkdir_p(File.dirname(DIRECTORY))
    Interruption.trap
    only_vm, files = arguments.partition { |argument| argument == "--vm" }
    tags = [*("~vm:false" if only_vm.any?), *("~emulated:false" if ENV["RPERF_EMULATED"] == "1")]
    lock { run_locked(tags, files) }
  end

  # One run at a time: they write the same files.
  def lock
    File.open(LOCK, File::RDWR | File::CREAT) do |file|
      unless file.flock(File::LOCK_EX | File::LOCK_NB)
        warn("waiting for another run of this checkout's specs to end (#{LOCK})")
        file.flock(File::LOCK_EX)
      end
      yield
    end
  end

  def run_locked(tags, files)
    # The specs run this file, too, and theirs isn't what the caller asked for.
    failures = ENV.delete("RPERF_FAILURES")
    FileUtils.rm_rf(DIRECTORY)
    FileUtils.mkdir_p(DIRECTORY)
    FileUtils.rm_f(RESULTS)
    plan = Plan.new(tags, files)
    jobs = together(plan.jobs) + alone(plan.alone)
    second = SecondTry.new(jobs)
    second.run { |job| say(job) } if second.worth_it?
    plan.remember(jobs)
    summary = Summary.new(jobs)
    summary.write(RESULTS)
    summary.write_failures(failures) if failures
    summary.print
    exit(summary.good?)
  end

  # Each worker takes the next job when it is done with one.
  def together(jobs)
    queue = Queue.new(jobs).close
    threads = Array.new(Settings::WORKERS) do
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
