# frozen_string_literal: true

# Programs with very many threads, or very deep stacks.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  many = Commands::LONG ? 5000 : 500

  [nil, 256].each do |stack|
    it "is as without rperf with #{many} threads#{" with stacks of #{stack} kB" if stack}" do
      program = program_of(<<~RUBY)
        queue = Thread::Queue.new
        threads = Array.new(#{many}) { |number| thread { queue.pop; compute; number } }
        Thread.pass until queue.num_waiting == #{many}
        queue.close
        threads.sum(&:value)
      RUBY
      before = stack ? Faults.shell("ulimit -s #{stack}") : []
      expect_same(program, before:, limit: 300)
    end
  end

  it "has 100 MB of memory more at most with #{many} threads" do
    used = told(<<~RUBY, limit: 300)
      def resident = File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1].to_i
      def live
        queue = Thread::Queue.new
        threads = Array.new(#{many}) { Thread.new { queue.pop; 100.times(&:to_s) } }
        Thread.pass until queue.num_waiting == #{many}
        queue.close
        threads.each(&:join)
        resident
      end
      alone = live
      Rperf.start(mode: :wall)
      profiled = live
      Rperf.stop
      puts [alone, profiled].to_json
    RUBY
    expect(used.last - used.first).to be < 100_000
  end

  it "is as without rperf when threads come and go all the time" do
    program = program_of(<<~RUBY)
      ends = now + 1
      sum = 0
      sum = Array.new(10) { |number| Thread.new { number } }.sum(&:value) while now < ends
      sum
    RUBY
    expect_same(program)
  end

  deep = {
    "9,000 methods deep" => "down(9_000)",
    "that overflows its stack again and again" => <<~RUBY,
      Array.new(30) do
        forever(0)
      rescue SystemStackError => e
        e.class.name.size
      end
    RUBY
    "that overflows the stacks of fibers" => <<~RUBY
      Array.new(30) do
        Fiber.new do
          forever(0)
        rescue SystemStackError => e
          work(0.005)
          e.class.name.size
        end.resume
      end
    RUBY
  }
  deep.each do |what, code|
    it "is as without rperf #{what}" do
      # With small ones for its fibers, too.
      env = { "RUBY_FIBER_VM_STACK_SIZE" => "65536", "RUBY_FIBER_MACHINE_STACK_SIZE" => "262144" }
      expect_same(program_of(<<~RUBY), env:)
        def (Program).forever(number) = 1 + forever(number + 1)
        def (Program).down(number) = number.zero? ? work(0.3) : down(number - 1)
        #{code}
      RUBY
    end
  end

  it "is as without rperf with fibers that a scheduler runs, whose hooks raise" do
    program = program_of(<<~RUBY)
      ends = []
      scheduled = thread do
        scheduler = Class.new(FiberScheduler) do
          def kernel_sleep(duration = nil) = duration == 0.001 ? raise("of a hook") : super
          def block(blocker, timeout = nil) = timeout == 0.002 ? raise("of another") : super
        end
        Fiber.set_scheduler(scheduler.new)
        50.times do |number|
          Fiber.schedule do
            work(0.004)
            number.even? ? Kernel.sleep(0.001) : Thread::Queue.new.pop(timeout: 0.002)
          rescue RuntimeError => e
            Kernel.sleep(0.002)
            ends << e.message
          end
        end
      end
      scheduled.join
      ends.tally.sort
    RUBY
    expect_same(program)
  end
end
