# frozen_string_literal: true

# The program of system_calls_spec.rb: makes all system calls, alone and beside a thread that keeps the GVL for most
# of the time, and prints what came of them as JSON.
#
#   ruby program.rb EXTENSION OPTIONS
#
# EXTENSION is the file of spec/native; OPTIONS are those of Rperf.start, as JSON; none: all runs without rperf.
require "io/nonblock"
require "json"
require_relative "calls"
require_relative "library_calls"
begin
  require_relative "openssl_calls"
rescue LoadError => e
  raise unless e.path == "openssl"
end
require ARGV[0]

# How often a call of the extension is made, and how long it takes: many ticks come while it lasts.
TIMES = 20
TIME = 0.005
READS = 5

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# The result, the least time and the time that it took.
def timed(least)
  began = now
  result = begin
    yield
  rescue SystemCallError, IOError, Timeout::Error => e
    [e.class.name, e.respond_to?(:errno) && e.errno]
  end
  { result:, least:, elapsed: now - began }
end

def of_ruby(group)
  calls = group.new
  group.public_instance_methods(false).to_h do |name|
    [name, timed(group::QUICK.include?(name) ? 0 : group::TIME) { calls.public_send(name) }]
  end
end

# Another process writes to the pipe that is read.
def read_pipe(with_gvl)
  IO.popen("sleep #{TIME}; echo") do |io|
    io.nonblock = false
    SpecNative.read(io.fileno, with_gvl)
  end
end

def of_extension(with_gvl)
  {
    nanosleep: Array.new(TIMES) { timed(TIME) { SpecNative.nanosleep((TIME * 1e9).to_i, with_gvl) } },
    poll: Array.new(TIMES) { timed(TIME) { SpecNative.poll((TIME * 1e3).to_i, with_gvl) } },
    read: Array.new(READS) { timed(TIME) { read_pipe(with_gvl) } }
  }
end

def all
  {
    ruby: of_ruby(Calls), libraries: of_ruby(LibraryCalls),
    openssl: defined?(OpenSSLCalls) ? of_ruby(OpenSSLCalls) : {},
    extension: of_extension(false), holding_gvl: of_extension(true)
  }
end

def beside_busy_thread
  busy = Thread.new { loop { 5_000.times { |number| [number].sum } && Thread.pass } }
  yield
ensure
  busy.kill
end

if ARGV[1]
  require "rperf"
  options = JSON.parse(ARGV[1], symbolize_names: true)
  options.transform_values!(&:to_sym)
  Rperf.start(frequency: 10_000, **options)
end
results = { alone: all, beside_busy_thread: beside_busy_thread { all } }
Rperf.stop if ARGV[1]
print JSON.generate(results)
