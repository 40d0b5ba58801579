# frozen_string_literal: true

# The program of torture_spec.rb: all kinds of work while sessions follow each other. Prints what the sessions said,
# and by how many kB resident memory grew in the second half of each, as JSON.
#
#   ruby program.rb SECONDS SESSIONS OPTIONS
#
# OPTIONS are those of Rperf.start, as JSON, and ractors: false, without which Ractors work first; none: all runs
# without rperf.
require_relative "work"

seconds = Float(ARGV[0])
sessions = Integer(ARGV[1])
options = JSON.parse(ARGV[2], symbolize_names: true) if ARGV[2]
THREADS = 8

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
def memory = File.exist?("/proc/self/status") ? File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1].to_i : 0

# Threads that work at the same time; call what this returns to end them.
def begin_threads
  over = false
  tasks = SizedQueue.new(2)
  consumer = Thread.new { while (task = tasks.pop) do Work.deep(10) { task.size } end }
  workers = Array.new(THREADS - 2) { Thread.new { tasks << [Work.any] until over } }
  lambda do
    over = true
    workers.each(&:join)
    tasks << nil
    consumer.join
  end
end

# Ractors are held for a while after their end, because Ruby frees one whose native thread has yet to let go of it,
# without rperf, too (docs/internals/ractors.md).
ENDED = Thread::Queue.new

def a_ractor(size)
  ENDED.shift if ENDED.size > 20
  Ractor.new(size) { |n| Array.new(500) { |i| (i + n).to_s }.sort.size }.tap { |ractor| ENDED << ractor }
end

def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take

# Under ZJIT nothing runs beside a Ractor: Ruby 4.0 crashes there without rperf, too (docs/internals/ractors.md).
def work_beside_ractors(deadline)
  alone = defined?(RubyVM::ZJIT) && RubyVM::ZJIT.enabled?
  while now < deadline
    next 2.times { |size| value_of(a_ractor(size)) } if alone

    ractors = Array.new(2) { |size| a_ractor(size) }
    3.times { Work.any_without_threads }
    ractors.each { |ractor| value_of(ractor) }
  end
end

def say(data, growth)
  main = data[:samples].sum { |row| row[2] == 1 ? row[1] : 0 }
  { main:, duration: data[:duration_ns], dropped: data[:dropped_samples], stacks: data[:tick_stacks], growth: }
end

Warning[:experimental] = false
GC.auto_compact = true
if options
  require "rperf"
  %i[mode capture].each { |name| options[name] &&= options[name].to_sym }
  options[:measure] &&= [*options[:measure]].map(&:to_sym)
  compiler = options.delete(:compiler)&.to_sym
  without_ractors = options.delete(:ractors) == false
end

length = seconds / sessions
end_threads = -> {}
results = Array.new(sessions) do |session|
  began = now
  Rperf.start(output: "#{session}.pb.gz", **options) if options
  end_threads.call
  work_beside_ractors(began + (length / 4)) unless without_ractors
  end_threads = begin_threads
  # What the profile is looked at for, whatever chance brings: for hundreds of ticks.
  worked = cpu + 0.03
  Work.redefine while cpu < worked
  Work.any while now < began + (length / 2)
  RubyVM.const_get(compiler).enable if compiler
  before = memory
  Work.any while now < began + length
  growth = memory - before
  options ? say(Rperf.stop, growth) : { growth: }
end
end_threads.call
print JSON.generate(results)
