# frozen_string_literal: true

require "json"
require_relative "places"
require_relative "result"

module Specs
  # A process of RSpec that runs some examples, and what came of it.
  class Job
    # @return [Array<String>] RSpec for examples with these tags, which finds this checkout's rperf
    def self.command(tags)
      ["env", "RUBYLIB=#{File.join(ROOT, "lib")}", "rspec", *tags.flat_map { |tag| ["--tag", tag] }]
    end

    attr_reader :name, :seconds, :results

    # @param ids [Array<String>] of the examples that it has to run
    # @param files [Array<String>] which they are in
    def initialize(name, tags, ids, files)
      @name = name
      @tags = tags
      @ids = ids
      @files = files
    end

    # Runs to the end.
    def run
      started = now
      formats = ["--format", "progress", "--format", "json", "--out", path("json")]
      pid = Process.spawn(*self.class.command(@tags), *formats, *@files, chdir: ROOT, %i[out err] => path("log"))
      @status = Process.wait2(pid).last
      @seconds = (now - started).round(2)
      @results = collect
      self
    end

    def good? = results.none?(&:failed?)

    # What is said as soon as it has run.
    def line = format("%<name>s: %<count>s (%<seconds>.1f s)", name:, count: Result.count(results), seconds:)

    # What RSpec has printed about failures, or the end of what it has printed.
    def failures
      text = File.read(path("log"))
      (text[/^Failures:\n.*/m] || text[/^An error occurred .*/m] || text.lines.last(60).join).strip
    end

    private

    def path(extension) = File.join(DIRECTORY, "#{name.tr("/", "-")}.#{extension}")

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # An example without a result has failed: its process didn't come to it.
    def collect
      seen = examples
      results = seen.map { |example| Result.of(example) }
      results += (@ids - seen.map { |example| example["id"] }).map { |id| Result.lost(id, "did not run") }
      results << Result.lost(@files.first, "RSpec failed (#{@status})") if !@status.success? && results.none?(&:failed?)
      results
    end

    def examples
      File.exist?(path("json")) ? JSON.parse(File.read(path("json"))).fetch("examples") : []
    rescue JSON::ParserError
      [] # It ended while it wrote.
    end
  end
end
