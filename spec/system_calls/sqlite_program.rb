# frozen_string_literal: true

# The program of system_calls_spec.rb that waits for a lock on a database: prints what SQLite returns, and the seconds
# it takes.
#
#   ruby sqlite_program.rb PATH MILLISECONDS OPTIONS
#
# Waits for MILLISECONDS. OPTIONS are those of Rperf.start, as JSON; none: all runs without rperf.
require "json"
require_relative "sqlite_calls"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

holder, other = Array.new(2) { SQLiteCalls.new(ARGV[0]) }
made = holder.execute("CREATE TABLE IF NOT EXISTS numbers (number INTEGER); BEGIN EXCLUSIVE")
if ARGV[2]
  require "rperf"
  options = JSON.parse(ARGV[2], symbolize_names: true)
  Rperf.start(**options.transform_values(&:to_sym))
end
other.busy_timeout(ARGV[1].to_i)
began = now
result = other.execute("INSERT INTO numbers VALUES (1)")
elapsed = now - began
# And without a wait.
rest = [holder.execute("COMMIT"), other.execute("INSERT INTO numbers VALUES (1)"), *[holder, other].map(&:close)]
Rperf.stop if ARGV[2]
print JSON.generate([result, elapsed, [made, *rest].uniq])
