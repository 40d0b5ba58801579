# frozen_string_literal: true

# The cost of loading rperf as a program starts, and the time that the command takes.
#
# Whole processes, in turn; "more" is the median difference to `ruby -e 1` in the
# same round. The last line is the time around `require "rperf"` in a new process.

require "rbconfig"
require_relative "support/child"
require_relative "support/clock"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Startup
  COMMAND = File.expand_path("../exe/rperf", __dir__)
  EXECUTABLE = File.expand_path("../lib/rperf/bin/rperf-command", __dir__)
  RUBY = [RbConfig.ruby, "-I", Bench::Child::LIBRARY].freeze
  CASES = {
    "ruby -e 1" => [*RUBY, "-e", "1"],
    "ruby -r rperf -e 1" => [*RUBY, "-r", "rperf", "-e", "1"],
    "rperf --version" => [*RUBY, COMMAND, "--version"],
    "rperf-command --version" => [EXECUTABLE, "--version"],
    "rperf record -o /dev/null ruby -e 1" => [*RUBY, COMMAND, "record", "-o", File::NULL, RbConfig.ruby, "-e", "1"]
  }.freeze
  BASE = CASES.keys.first
  REQUIRE = <<~RUBY
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    require "rperf"
    print Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
  RUBY

  module_function

  def run(options)
    Bench::Machine.head("#{options[:runs]} interleaved runs, medians")
    results = Bench::Interleave.call([*CASES.keys, :require], runs: options[:runs], warm_up: !options[:smoke]) do |name|
      name == :require ? time_of_require : time_of(name)
    end
    required = results.delete(:require)
    rows = results.map { |name, times| row(name, times, results[BASE]) }
    rows << ["require \"rperf\" (in the process)", milliseconds(required), "-", quartiles(required)]
    Bench::Table.print(["command", "ms", "more ms", "quartiles"], rows)
  end

  def time_of(name)
    started = Bench::Clock.wall
    system(*CASES.fetch(name), out: File::NULL, err: File::NULL) || abort("bench/startup: '#{name}' failed")
    Bench::Clock.wall - started
  end

  def time_of_require = Integer(IO.popen([*RUBY, "-e", REQUIRE], &:read))

  def row(name, times, base)
    more = times.zip(base).map { |time, least| time - least }
    return [name, milliseconds(times), "-", "-"] if name == BASE

    [name, milliseconds(times), milliseconds(more), quartiles(more)]
  end

  def milliseconds(values) = format("%.1f", Bench::Statistics.median(values) / 1e6)

  def quartiles(values) = Bench::Statistics.quartiles(values).map { |it| format("%.1f", it / 1e6) }.join(" to ")
end

Startup.run(Bench::Options.parse("startup", ARGV, { runs: 20 }, smoke: { runs: 1 })) if $PROGRAM_NAME == __FILE__
