# frozen_string_literal: true

require_relative "result"

module Specs
  # What came of all jobs.
  class Summary
    SLOWEST = 10

    def initialize(jobs)
      @jobs = jobs
      @results = jobs.flat_map(&:results)
    end

    def good? = @results.any? && @jobs.all?(&:good?)

    # A line for each example.
    def write(path) = File.write(path, @results.map(&:to_line).join)

    # What has failed, if anything has.
    def write_failures(path)
      failed = @jobs.reject(&:good?)
      File.write(path, failed.flat_map { |job| failures_of(job) }.join("\n") << "\n") if failed.any?
    end

    def print
      print_pending
      print_slowest
      print_failures
      unsteady = @jobs.sum { |job| job.unsteady.size }
      puts "\n#{Result.count(@results)}#{", #{unsteady} unsteady" if unsteady.positive?}"
    end

    private

    def print_pending
      reasons = @results.select { |result| result.status == "pending" }.group_by(&:reason)
      puts "\nnot run:" unless reasons.empty?
      reasons.each { |reason, results| puts "  #{results.size} examples: #{reason}" }
    end

    def print_slowest
      puts "\nslowest examples:"
      @results.max_by(SLOWEST, &:seconds).each do |result|
        puts format("  %<seconds>5.1f s  %<file>s: %<description>s", result.to_h)
      end
      puts "slowest files:"
      sums = @results.group_by(&:file).transform_values { |results| results.sum(&:seconds) }
      sums.max_by(SLOWEST, &:last).each do |file, seconds|
        puts format("  %<seconds>5.1f s  %<file>s", seconds:, file:)
      end
      puts format("sum: %<all>.1f s, of which %<alone>.1f s alone", all: sums.values.sum, alone:)
    end

    def alone = @jobs.select { |job| job.name == "alone" }.flat_map(&:results).sum(&:seconds)

    def print_failures
      @jobs.each do |job|
        next if job.good? && job.unsteady.empty?

        puts failures_of(job)
      end
    end

    def failures_of(job)
      lost = job.results.select { |result| result.failed? && result.seconds.zero? }
      ["\n#{job.name}:\n#{job.failures}",
       *job.unsteady.map { |it| "  unsteady, passed twice with nothing beside it: #{it.description}" },
       *lost.map { |it| "  #{it.description}" }]
    end
  end
end
