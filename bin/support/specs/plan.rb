# frozen_string_literal: true

require "json"
require "open3"
require_relative "job"
require_relative "places"
require_relative "result"

module Specs
  # Which examples there are, and which processes are to run them.
  class Plan
    # @param tags [Array<String>] what the examples must fit, as for `rspec --tag`
    def initialize(tags)
      @tags = tags
    end

    # @return [Array<Job>] a job for each file, in the order in which they are to begin
    def jobs
      tags = [*@tags, "~alone"]
      files = examples(tags).group_by { |id| Result.file_of(id) }
      in_order(files.keys).map { |file| Job.new(file, tags, files.fetch(file), [file]) }
    end

    # @return [Job, nil] the job for all examples that run alone
    def alone
      tags = [*@tags, "alone"]
      ids = examples(tags)
      Job.new("alone", tags, ids, ids.map { |id| Result.file_of(id) }.uniq) unless ids.empty?
    end

    # Keeps how long each file took, for the next time.
    def remember(jobs) = File.write(TIMES, JSON.generate(times.merge(jobs.to_h { |job| [job.name, job.seconds] })))

    private

    def times
      @times ||= File.exist?(TIMES) ? JSON.parse(File.read(TIMES)) : {}
    end

    # The longest first, so that the last ones to end are short; those that nobody knows before all, by their size.
    def in_order(files)
      files.sort_by do |file|
        seconds = times[file]
        seconds ? [1, -seconds] : [0, -File.size(File.join(ROOT, file))]
      end
    end

    # The ids of the examples, each of which begins with its file.
    def examples(tags)
      out = File.join(DIRECTORY, "plan.json")
      said, status = Open3.capture2e(*Job.command(tags), "--dry-run", "--format", "json", "--out", out, chdir: ROOT)
      abort("the specs can't be loaded:\n#{said}") unless status.success?

      JSON.parse(File.read(out)).fetch("examples").map { |example| example.fetch("id") }
    end
  end
end
