# frozen_string_literal: true

# A program of one of the kinds that programs are: of Faults::KINDS in spec/support/faults.rb, which runs it.
#
#   program.rb KIND
#
# It runs the Ruby code in the file INSIDE first. Its first line is `pid` with its process, and its last one `lived`
# with the seconds that its threads and processes have lived, together, and `early` with how many of its sleeps ended
# early.
# What is between them, its files and its status are the same each time.

require_relative "../support/fiber_scheduler"
require "timeout"
require ENV.fetch("NATIVE")

# What each of them does.
module Program
  BEGAN = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  LIVED = Thread::Queue.new
  @early = 0

  class << self
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def cpu_now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

    # Uses so many seconds of CPU time, and returns what is always the same.
    def work(seconds)
      ends = cpu_now + seconds
      sum = compute
      sum = compute while cpu_now < ends
      sum
    end

    def compute = Array.new(300) { |number| (number * 7).to_s }.sort.join.sum

    # A thread, which notes how long it has lived.
    def thread
      Thread.new do
        began = now
        yield
      ensure
        LIVED << (now - began)
      end
    end

    def cpu = work(0.4)

    # With the GVL.
    def sleep
      @early = Array.new(8) { SpecNative.nanosleep(50_000_000, true).first }.count(-1)
      8
    end

    def threads
      results = Thread::SizedQueue.new(4)
      threads = Array.new(20) do |number|
        thread do
          5.times do
            work(0.002)
            Kernel.sleep(0.01)
            results << number
          end
        end
      end
      Array.new(100) { results.pop }.sum.tap { threads.each(&:join) }
    end

    # Three children, each of which has two; one of them becomes another program.
    def forks
      reader, writer = IO.pipe
      children = Array.new(3) { |number| fork { child(number, writer) } }
      statuses = children.map { |pid| Process.wait2(pid).last.exitstatus }
      writer.close
      reader.each_line { |line| LIVED << line.to_f }
      statuses
    end

    def child(number, writer)
      began = now
      children = [fork { leaf(number, writer) }, fork { exec("true") }]
      work(0.05)
      statuses = children.map { |pid| Process.wait2(pid).last.exitstatus }
      writer.syswrite("#{now - began}\n")
      exit(statuses.sum + number)
    end

    def leaf(number, writer)
      began = now
      work(0.1)
      writer.syswrite("#{now - began}\n")
      exit(10 * number)
    end

    def fibers
      sum = 0
      scheduled = thread { FiberScheduler.run { schedule { |value| sum += value } } }
      scheduled.join
      Timeout.timeout(0.02) { Kernel.sleep }
    rescue Timeout::Error
      sum
    end

    # Fibers that work, sleep and wait for each other, and one that an exception ends where it waits.
    def schedule(&add)
      results = Thread::Queue.new
      20.times do |number|
        Fiber.schedule do
          3.times do
            work(0.003)
            Kernel.sleep(0.01)
          end
          results << number
        end
      end
      Fiber.schedule { 20.times { add.call(results.pop) } }
      stuck = Fiber.schedule { wait_for_ever(&add) }
      stuck.raise("enough")
    end

    def wait_for_ever
      Thread::Queue.new.pop
    rescue RuntimeError => e
      yield e.message.size
    end

    # There may be no room for it.
    def note(result)
      File.write("result", result)
    rescue SystemCallError => e
      warn(e.class)
    end

    def run(kind)
      result = public_send(kind)
      note(result)
      puts "result #{result}"
      LIVED << (now - BEGAN)
      puts "lived #{Array.new(LIVED.size) { LIVED.pop }.sum} early #{@early}"
    end
  end
end

$stdout.sync = true
puts "pid #{Process.pid}"
load ENV.fetch("INSIDE")
Program.run(ARGV.fetch(0)) if $PROGRAM_NAME == __FILE__
exit(7) if $PROGRAM_NAME == __FILE__
