# frozen_string_literal: true

require "json"
require_relative "crashes"
require_relative "places"
require_relative "processes"
require_relative "result"
require_relative "settings"

module Specs
  # A process of RSpec that runs some examples, and what came of it.
  class Job
    # @return [Array<String>] RSpec for examples with these tags, which finds this checkout's rperf
    def self.command(tags)
      ["env", "RUBYLIB=#{File.join(ROOT, "lib")}", "rspec", *tags.flat_map { |tag| ["--tag", tag] }]
    end

    attr_reader :name, :files, :seconds, :results

    # @param ids [Array<String>] of the examples that it has to run
    # @param files [Array<String>] which they are in
    # @param seed [Integer, nil] the order in which they run
    def initialize(name, tags, ids, files, seed = nil)
      @name = name
      @tags = tags
      @ids = ids
      @files = files
      @seed = seed
    end

    # Runs to the end.
    def run
      started = now
      formats = ["--format", "progress", "--format", "json", "--out", path("json")]
      order = @seed ? ["--seed", @seed.to_s] : []
      @status, @is_late = Processes.run(*self.class.command(@tags), *order, *formats, *@files,
                                        chdir: ROOT, %i[out err] => path("log"), limit: Settings::LIMIT)
      @seconds = (now - started).round(2)
      @results = collect
      self
    end

    def good? = results.none?(&:failed?)

    # @return [Job] the same examples in the same order, in one process
    def again(number) = Job.new("#{name}, try #{number}", @tags, @ids, @files, @read["seed"])

    # Whether RSpec has run all, and nothing but examples has failed; and no program of theirs has crashed.
    def mendable? = results.all?(&:id) && (failed_ids & Crashes.ids).empty?

    # @return [Array<String>] of examples
    def failed_ids = results.select(&:failed?).filter_map(&:id)

    # Takes what failed as unsteady.
    def pass = results.select(&:failed?).each { |result| result.status = "unsteady" }

    # @return [Array<Result>] those that failed first, and passed then
    def unsteady = results.select { |result| result.status == "unsteady" }

    # What is said as soon as it has run.
    def line = format("%<name>s: %<count>s (%<seconds>.1f s)", name:, count: Result.count(results), seconds:)

    # What RSpec has printed about failures, or the end of what it has printed.
    def failures
      text = File.read(path("log")).scrub
      (text[/^(?:Failures:\n|An error occurred ).*/m] || text.lines.last(60).join).strip
    end

    # @return [Hash{String => Float}] the seconds of each file: of its examples, and a share of all else
    def times
      sums = files.to_h { |file| [file, results.select { |result| result.file == file }.sum(&:seconds)] }
      rest = (seconds - sums.values.sum) / files.size
      sums.transform_values { |sum| (sum + rest).round(2) }
    end

    private

    def path(extension) = File.join(DIRECTORY, "#{name.tr("/ ", "-")}.#{extension}")

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # An example without a result has failed: its process didn't come to it.
    def collect
      told = @read = read
      seen = told.fetch("examples")
      results = seen.map { |example| Result.of(example) }
      lost = (@ids - seen.map { |example| example["id"] }).map { |id| Result.lost(id, "did not run") }
      complaints = @is_late || (lost.empty? && !sound?(told, results)) ? [Result.lost(@files.first, complaint)] : []
      results + lost + complaints
    end

    # RSpec itself fails with status 1, as failing examples do, but counts what fails outside of them.
    def sound?(told, results)
      return @status.success? unless @status.exitstatus == 1

      results.any?(&:failed?) && told.dig("summary", "errors_outside_of_examples_count") == 0
    end

    def complaint = @is_late ? "RSpec was ended after #{Settings::LIMIT} s" : "RSpec failed (#{@status})"

    def read
      File.exist?(path("json")) ? JSON.parse(File.read(path("json"))) : { "examples" => [] }
    rescue JSON::ParserError
      { "examples" => [] } # It ended while it wrote.
    end
  end
end
