# frozen_string_literal: true

# A process that sleeps under a profiler: sleeper.rb PROFILER HERTZ. Says "before"
# and "ready" around the profiler's start, and ends when its input does.

require_relative "../support/profilers"

name, hertz = ARGV
profiler = Bench::Profilers.fetch(name)
require profiler.library if profiler.library
$stdout.sync = true
puts "before"
$stdin.readline
profiler.start.call(Integer(hertz))
puts "ready"
$stdin.read
profiler.stop.call
