# frozen_string_literal: true

# known_failures.rb LIST RESULTS: compares what fails on a Ruby that isn't released with the list of what is known to
# fail there. A failure that isn't on the list is an error, and so is one on it that passes, or doesn't run any more:
# so the list is always true.
#
# LIST is a YAML file, empty or missing if nothing fails: a list of hashes with the keys
#   file       of the spec, or examples/NAME.rb, or ext/rperf if the extension can't be built
#   example    the full description, as RSpec has it; for examples/ and ext/rperf none
#   reason     a sentence
#   sometimes  true if it passes now and then
# RESULTS has a line for each example: status, file and description, with tabs between them. One that failed first, and
# passed then, is unsteady. Each examples/*.rb has a line, too, without a description.

Encoding.default_external = Encoding::UTF_8

require "yaml"

# What is known to fail, and what does.
class KnownFailures
  EXTENSION = "ext/rperf"

  # One entry of the list.
  Entry = Struct.new(:file, :example, :reason, :sometimes, keyword_init: true) do
    def key = [file, example.to_s]
    def to_s = [file, example].compact.join(": ")
  end

  # @param path [String] of the list
  # @return [Array<Entry>]
  # @raise [ArgumentError] if the list isn't one
  def self.read(path)
    rows = (YAML.safe_load_file(path) if File.exist?(path)) || []
    raise ArgumentError, "#{path}: must be a list" unless rows.is_a?(Array)

    rows.map { |row| entry(path, row) }.tap do |entries|
      twice = entries.map(&:key).tally.find { |_, count| count > 1 }
      raise ArgumentError, "#{path}: #{twice.first.join(": ")} is there twice" if twice
    end
  end

  def self.entry(path, row)
    known = row.is_a?(Hash) && row["file"] && row["reason"] && (row.keys.map(&:to_sym) - Entry.members).empty?
    raise ArgumentError, "#{path}: #{row.inspect} needs a file and a reason, and no unknown key" unless known

    Entry.new(**row.transform_keys(&:to_sym))
  end
  private_class_method :entry

  # @param path [String] of the results
  # @return [Array<Array<String>>] status, file and description of each
  def self.results(path) = File.readlines(path, chomp: true).map { |line| line.split("\t", -1).first(3) }

  # @param entries [Array<Entry>]
  # @param results [Array<Array<String>>]
  # @param programs [Array<String>] which must be among the results
  def initialize(entries, results, programs = [])
    @entries = entries
    @programs = programs
    # Of examples with the same description, those that fail count.
    @statuses = results.each_with_object({}) do |(status, *key), statuses|
      statuses[key] = status unless %w[failed unsteady].include?(statuses[key])
    end
  end

  # @return [Array<Entry>] what fails, and is known to
  def known = @entries.select { |entry| status(entry) == "failed" }

  # @return [Array<String>] what is wrong, a line for each
  def problems
    return ["nothing has run"] if @statuses.empty?

    listed = @entries.map(&:key)
    failed = @statuses.select { |key, status| status == "failed" && !listed.include?(key) }.keys
    failed.map { |file, example| "fails, and isn't known to: #{[file, *(example unless example.empty?)].join(": ")}" } +
      missing.map { |program| "didn't run: #{program}" } + @entries.filter_map { |entry| problem(entry) }
  end

  private

  def status(entry) = @statuses[entry.key]

  def problem(entry)
    case status(entry)
    when "passed" then "passes, take it off the list: #{entry}" unless entry.sometimes
    when "failed", "unsteady" then nil
    else "doesn't run, and is on the list: #{entry}" unless unbuilt?
    end
  end

  def missing = unbuilt? ? [] : @programs.reject { |program| @statuses.key?([program, ""]) }

  # Without the extension nothing else runs.
  def unbuilt? = @statuses[[EXTENSION, ""]] == "failed"
end

if $PROGRAM_NAME == __FILE__
  list, results = ARGV
  abort("usage: known_failures.rb LIST RESULTS") unless results
  abort("#{results} is missing: the specs have not run to their end") unless File.exist?(results)
  begin
    comparison = KnownFailures.new(KnownFailures.read(list), KnownFailures.results(results), Dir["examples/*.rb"])
  rescue ArgumentError => e
    abort(e.message)
  end
  puts "\ncompared with #{list}:"
  comparison.known.each { |entry| puts "  known to fail: #{entry}\n    #{entry.reason.strip}" }
  puts "  nothing fails" if comparison.known.empty? && comparison.problems.empty?
  comparison.problems.each { |problem| puts "  #{problem}" }
  exit(comparison.problems.empty?)
end
