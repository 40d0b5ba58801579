# frozen_string_literal: true

require "json"
require_relative "job"
require_relative "places"
require_relative "processes"
require_relative "result"
require_relative "settings"

module Specs
  # Which examples there are, and which processes are to run them.
  class Plan
    # Files share a process, which takes a second to start, if they together take no more seconds than this.
    SHARED = 8
    # How large a file is that takes a second, of those that nobody knows.
    BYTES_IN_A_SECOND = 1500

    # @param tags [Array<String>] what the examples must fit, as for `rspec --tag`
    # @param files [Array<String>] of which they are; all, if it is empty
    def initialize(tags, files)
      @tags = tags
      @files = files
    end

    # @return [Array<Job>] jobs for all files, in the order in which they are to begin
    def jobs
      tags = [*@tags, "~alone"]
      ids = examples(tags).group_by { |id| Result.file_of(id) }
      together(in_order(ids.keys)).map do |files|
        Job.new(title(files), tags, ids.values_at(*files).flatten, files)
      end
    end

    # @return [Job, nil] the job for all examples that run alone
    def alone
      tags = [*@tags, "alone"]
      ids = examples(tags)
      Job.new("alone", tags, ids, ids.map { |id| Result.file_of(id) }.uniq) unless ids.empty?
    end

    # Keeps how long each file took beside others, for the next time.
    def remember(jobs)
      taken = jobs.reject { |job| job.name == "alone" }.map(&:times)
      File.write(TIMES, JSON.generate(times.merge(*taken)))
    end

    private

    def times
      @times ||= File.exist?(TIMES) ? JSON.parse(File.read(TIMES)) : {}
    end

    # The longest first, so that the last ones to end are short; those that nobody knows before all, by their size.
    def in_order(files) = files.sort_by { |file| [times.key?(file) ? 1 : 0, -seconds(file)] }

    def seconds(file) = times[file] || (File.size(File.join(ROOT, file)).to_f / BYTES_IN_A_SECOND)

    # Neighbours in this order.
    def together(files)
      sum = 0
      files.slice_when do |before, after|
        sum += seconds(before)
        (sum + seconds(after) > SHARED).tap { |is_full| sum = 0 if is_full }
      end
    end

    def title(files) = files.one? ? files.first : "#{files.first} and #{files.size - 1} more"

    # The ids of the examples, each of which begins with its file.
    def examples(tags)
      out, log = %w[plan.json plan.log].map { |name| File.join(DIRECTORY, name) }
      formats = ["--format", "json", "--out", out]
      status, = Processes.run(*Job.command(tags), "--dry-run", *formats, *@files,
                              chdir: ROOT, %i[out err] => log, limit: Settings::LIMIT)
      told = File.exist?(out) ? JSON.parse(File.read(out)) : {}
      refuse([*told["messages"], File.read(log)]) unless status.success?

      told.fetch("examples").map { |example| example.fetch("id") }
    end

    def refuse(reasons) = abort("the specs can't be loaded:\n#{reasons.join("\n").scrub.strip}")
  end
end
