# frozen_string_literal: true

# Ruby's own tests, profiled and alone: each whose result differs in three runs of three is named. Those that differ by
# what rperf is are in known_differences.yml, with the reason. Those that differ in one or two of the three are named
# apart, and are no failure. The tests have to be of the Ruby that runs this.
#
#   suite.rb SOURCE [TEST_FILE...]    SOURCE: a directory with Ruby's source; without files, all of test/ruby

require "tmpdir"
require "yaml"
require_relative "source"

# Runs and compares.
class RubySuite
  ENGINES = { "interpreter" => [], "YJIT" => ["--yjit"] }.freeze
  MODES = %w[cpu wall].freeze
  RUNS = 3
  EXE = File.join(RubyTests::ROOT, "exe/rperf")
  KNOWN = YAML.load_file(File.join(__dir__, "known_differences.yml")).freeze

  def initialize(source, tests)
    @source = source
    @tests = tests
  end

  # @return [Boolean] whether nothing differs but what is known to
  def run
    @at_times = []
    unknown = Dir.mktmpdir("rperf tests") do |directory|
      @output = File.join(directory, "tests.pb.gz")
      engines.flat_map { |name, options| differences_with(name, options) }
    end
    @at_times.each { |line| puts "differs at times: #{line}" }
    unknown.each { |line| puts "differs: #{line}" }
    puts "no test differs but those that are known to" if unknown.empty?
    unknown.empty?
  end

  private

  def engines = ENGINES.select { |name, _| name == "interpreter" || RbConfig::CONFIG["YJIT_SUPPORT"] != "no" }

  def differences_with(engine, options)
    alone = @source.results(@tests, options:)
    puts "#{engine}, alone: #{summary(alone)}"
    MODES.flat_map do |mode|
      run = @source.run(@tests, before: profiler(mode), options:)
      next ["all tests (#{engine}, #{mode}): the run ended by signal #{run.signal}"] if run.signal

      profiled = run.results
      puts "#{engine}, #{mode}: #{summary(profiled)}"
      names = alone.keys.reject { |name| profiled[name] == alone[name] }
      counts = names.to_h { |name| [name, differences(name, mode, options)] }
      names = counts.keys.select { |name| counts[name] == RUNS }
      known, unknown = names.partition { |name| KNOWN.key?(name) }
      known.each { |name| puts "  known: #{name}: #{KNOWN[name]}" }
      unknown.each { |name| puts "  differs: #{name}" }
      note_at_times(counts, "#{engine}, #{mode}")
      unknown.map { |name| "#{name} (#{engine}, #{mode})" }
    end
  end

  def profiler(mode) = [RbConfig.ruby, EXE, "record", "-m", mode, "-f", "1000", "-o", @output, "--"]

  def note_at_times(counts, how)
    counts.select { |_, count| count.between?(1, RUNS - 1) }.each do |name, count|
      puts "  differs at times: #{name}: in #{count} of #{RUNS} runs"
      @at_times << "#{name} (#{how}): in #{count} of #{RUNS} runs"
    end
  end

  # Alone, too, some tests fail now and then.
  # @return [Integer] in how many of RUNS runs the result differs
  def differences(name, mode, options)
    test = [*@tests, "-n", RubyTests.method_of(name)]
    (1..RUNS).count do
      alone, profiled = [[], profiler(mode)].map { |before| @source.run(test, before:, options:).results[name] }
      alone != profiled
    end
  end

  def summary(results) = "#{results.values.count(true)} of #{results.size} tests pass"
end

$stdout.sync = true
abort("usage: suite.rb SOURCE [TEST_FILE...]") if ARGV.empty?
directory, *tests = ARGV
tests = ["test/ruby"] if tests.empty?
exit(RubySuite.new(RubyTests::Source.at(directory, tests.first), tests).run)
