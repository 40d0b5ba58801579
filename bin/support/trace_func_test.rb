# frozen_string_literal: true

# Ruby's own test of set_trace_func and TracePoint, in traces of each level, without rperf, and with hooks that do
# nothing: a test that fails in a trace only is an error. What fails with such hooks, too, is the VM's own doing: it
# rewrites instructions for any hook, and a test reads them. The test has to be of the Ruby that runs this.
#
#   trace_func_test.rb SOURCE    SOURCE: a directory with Ruby's source

require "open3"
require "rbconfig"
require "tmpdir"

# Runs and compares.
module TraceFuncTest
  TEST = "test/ruby/test_settracefunc.rb"
  LEVELS = %w[ruby all count count-all].freeze
  NAME = /TestSetTraceFunc#\w+/
  # The line of a test that has run to its end, and the report of one that didn't pass.
  RAN = /(#{NAME}) = [\d.]+ s/
  FAILED = /^ *\d+\) (?:Failure|Error):\n(#{NAME})/
  ROOT = File.expand_path("../..", __dir__)

  module_function

  # @return [Hash{String => Boolean}] whether it passes, for each test, by its name
  def results(source, *before, **env)
    command = [*before, RbConfig.ruby, "test/runner.rb", "--verbose", "--jobs-status=none", TEST]
    env = { "RUBYOPT" => nil, "RUBYLIB" => nil }.merge(env.transform_keys(&:to_s))
    output, = Open3.capture2e(env, *command, chdir: source)
    ran = output.scan(RAN).flatten
    abort("#{command.join(" ")}: no test has run:\n#{output}") if ran.empty?
    failed = output.scan(FAILED).flatten
    ran.to_h { |name| [name, !failed.include?(name)] }
  end

  def run(source)
    plain = results(source)
    puts "without rperf: #{summary(plain)}"
    faults = Dir.mktmpdir("rperf test") do |directory|
      LEVELS.flat_map { |level| faults(source, directory, level, plain) }
    end
    faults.each { |fault| puts "fails in a trace only: #{fault}" }
    exit(faults.empty?)
  end

  def faults(source, directory, level, plain)
    exe = File.join(ROOT, "exe/rperf")
    traced = results(source, RbConfig.ruby, exe, "trace", "--calls", level, "-o", File.join(directory, "test.pb.gz"))
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
    library = [directory, File.join(ROOT, "lib")].join(File::PATH_SEPARATOR)
    results(source, RUBYLIB: library, RUBYOPT: "-rrperf_empty_hooks")
  end

  def summary(results) = "#{results.values.count(true)} of #{results.size} tests pass"

  # @return [Boolean] whether a directory has the source of this Ruby, but for its last number
  def fits?(source)
    header = File.join(source, "include/ruby/version.h")
    return false unless File.exist?(header) && File.exist?(File.join(source, TEST))

    numbers = %w[MAJOR MINOR].map { |name| File.read(header)[/RUBY_API_VERSION_#{name} (\d+)/, 1] }
    numbers.join(".") == RUBY_VERSION[/\A\d+\.\d+/]
  end
end

abort("usage: trace_func_test.rb SOURCE") unless ARGV.size == 1
abort("#{ARGV[0]} has no source of Ruby #{RUBY_VERSION} with its tests") unless TraceFuncTest.fits?(ARGV[0])
TraceFuncTest.run(ARGV[0])
