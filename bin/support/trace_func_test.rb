# frozen_string_literal: true

# Ruby's own test of set_trace_func and TracePoint, without rperf and in traces of each level: whatever fails in a trace
# only is an error. The test has to be of the Ruby that runs this.
#
#   trace_func_test.rb SOURCE    SOURCE: a folder with Ruby's source

require "open3"
require "rbconfig"
require "tmpdir"

# Runs and compares.
module TraceFuncTest
  TEST = "test/ruby/test_settracefunc.rb"
  LEVELS = %w[ruby all count count-all].freeze
  # A test's line, of which the last letter says how it ended.
  LINE = /(TestSetTraceFunc#\w+) = [\d.]+ s = (.)$/

  module_function

  # @return [Hash{String => String}] "." for each test that passes, by its name
  def results(source, *before)
    command = [*before, RbConfig.ruby, "test/runner.rb", "--verbose", "--jobs-status=none", TEST]
    output, = Open3.capture2e({ "RUBYOPT" => nil, "RUBYLIB" => nil }, *command, chdir: source)
    found = output.scan(LINE).to_h
    abort("#{command.join(" ")}: no test has run:\n#{output}") if found.empty?
    found
  end

  def run(source)
    plain = results(source)
    puts "without rperf: #{summary(plain)}"
    failures = Dir.mktmpdir("rperf test") do |folder|
      LEVELS.flat_map do |level|
        exe = File.expand_path("../../exe/rperf", __dir__)
        rperf = [RbConfig.ruby, exe, "trace", "--calls", level, "-o", File.join(folder, "test.pb.gz")]
        traced = results(source, *rperf)
        puts "traced, --calls #{level}: #{summary(traced)}"
        plain.filter_map { |name, result| "#{level}: #{name}" if result == "." && traced[name] != "." }
      end
    end
    failures.each { |failure| puts "fails in a trace only: #{failure}" }
    exit(failures.empty?)
  end

  def summary(results) = "#{results.values.count(".")} of #{results.size} tests pass"
end

abort("usage: trace_func_test.rb SOURCE") unless ARGV.size == 1 && File.exist?(File.join(ARGV[0], TraceFuncTest::TEST))
TraceFuncTest.run(ARGV[0])
