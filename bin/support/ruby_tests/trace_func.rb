# frozen_string_literal: true

# Ruby's own test of set_trace_func and TracePoint, in traces of each level, without rperf, and with hooks that do
# nothing: a test that fails in a trace only is an error. What fails with such hooks, too, is the VM's own doing: it
# rewrites instructions for any hook, and a test reads them. The test has to be of the Ruby that runs this.
#
#   trace_func.rb SOURCE    SOURCE: a directory with Ruby's source

require "tmpdir"
require_relative "source"

# Runs and compares.
module TraceFuncTest
  TEST = "test/ruby/test_settracefunc.rb"
  LEVELS = %w[ruby all count count-all].freeze

  module_function

  def run(source)
    plain = source.results([TEST])
    puts "without rperf: #{summary(plain)}"
    faults = Dir.mktmpdir("rperf test") do |directory|
      LEVELS.flat_map { |level| faults(source, directory, level, plain) }
    end
    faults.each { |fault| puts "fails in a trace only: #{fault}" }
    exit(faults.empty?)
  end

  def faults(source, directory, level, plain)
    output = File.join(directory, "test.pb.gz")
    exe = File.join(RubyTests::ROOT, "exe/rperf")
    traced = source.results([TEST], before: [RbConfig.ruby, exe, "trace", "--calls", level, "-o", output])
    puts "traced, --calls #{level}: #{summary(traced)}"
    failures = plain.keys.select { |name| plain[name] && !traced[name] }
    hooked = failures.empty? ? {} : with_empty_hooks(source, directory, level)
    of_vm, faults = failures.partition { |name| hooked[name] == false }
    of_vm.each { |name| puts "  with any hook: #{name}" }
    faults.map { |name| "#{level}: #{name}" }
  end

  # The directory's name may have a space, which RUBYOPT can't hold.
  def with_empty_hooks(source, directory, level)
    code = "require \"rperf\"\nRperf.const_get(:Native).add_empty_trace(:#{level.inspect})\n"
    File.write(File.join(directory, "rperf_empty_hooks.rb"), code)
    library = [directory, File.join(RubyTests::ROOT, "lib")].join(File::PATH_SEPARATOR)
    source.results([TEST], RUBYLIB: library, RUBYOPT: "-rrperf_empty_hooks")
  end

  def summary(results) = "#{results.values.count(true)} of #{results.size} tests pass"
end

abort("usage: trace_func.rb SOURCE") unless ARGV.size == 1
TraceFuncTest.run(RubyTests::Source.at(ARGV[0], TraceFuncTest::TEST))
