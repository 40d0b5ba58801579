# frozen_string_literal: true

# Everything at once, at the highest frequency: the profile stays valid, its time
# adds up, and memory stays bounded. A second for each mode, or a minute in all
# with RPERF_LONG=1 (bin/test --long).
RSpec.describe "a program that does everything at once" do
  seconds = ENV["RPERF_LONG"] == "1" ? 30 : 1

  # Prints its resident memory in kB after a third of its time and at its end.
  program = <<~'RUBY'
    require "rperf"
    require "timeout"
    SECONDS, MODE, OUTPUT = ARGV[0].to_f, ARGV[1].to_sym, ARGV[2]
    STARTED = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def passed = Process.clock_gettime(Process::CLOCK_MONOTONIC) - STARTED
    def over? = passed > SECONDS
    def memory = File.exist?("/proc/self/status") ? File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1].to_i : 0

    def deep(depth, &block) = depth.zero? ? block.call : deep(depth - 1, &block)

    # Methods that come and go, and whose code is collected.
    def redefine(round)
      Object.class_eval("def made(n) = n.zero? ? [#{round}] : made(n - 1)", "made_#{round % 50}.rb")
      made(20)
      Class.new { define_method(:short_lived) { [self] } }.new.short_lived
    end

    def collect
      GC.stress = true
      3.times { |index| [index, index.to_s] }
      GC.stress = false
      GC.compact
    ensure
      GC.stress = false
    end

    def raise_and_rescue
      deep(rand(100)) { raise "found" }
    rescue RuntimeError => e
      e.backtrace.size
    end

    def interrupt
      Timeout.timeout(0.0005) { sleep 0.01 }
    rescue Timeout::Error
      nil
    end

    def switch_fibers
      numbers = Enumerator.new { |yielder| deep(30) { 5.times { |n| yielder << n } } }
      5.times { numbers.next }
      Fiber.new { deep(50) { Fiber.yield } }.resume
    end

    work = [
      method(:redefine), ->(_) { collect }, ->(_) { raise_and_rescue }, ->(_) { interrupt }, ->(_) { switch_fibers },
      ->(_) { Thread.new { deep(rand(200)) { sleep(rand / 1000) } }.join },
      ->(_) { Array.new(500) { |index| "string #{index}" }.sort }
    ]

    Rperf.start(mode: MODE, frequency: 10_000, output: OUTPUT)
    queue = SizedQueue.new(2)
    consumer = Thread.new { while (task = queue.pop) do deep(10) { task.to_s } end }
    others = Array.new(3) { Thread.new { until over? do work.sample.call(rand(1000)) end } }
    round = 0
    early = nil
    until over?
      round += 1
      work[round % work.size].call(round)
      queue << round
      early ||= memory if passed > SECONDS / 3
    end
    others.each(&:join)
    queue << nil
    consumer.join
    data = Rperf.stop
    main = data[:samples].sum { |row| row[2] == 1 ? row[1] : 0 }
    print [data[:duration_ns], main, data[:dropped_samples], early || memory, memory].inspect
  RUBY

  %i[wall cpu].each do |mode|
    it "has a sound profile in #{mode} mode" do
      path = write_file("torture.rb", program)
      outcome = run(ruby, "-W0", "-I#{Commands::ROOT}/lib", path, seconds.to_s, mode.to_s, in_folder("p.pb.gz"),
                    limit: Commands::TIME_LIMIT + seconds)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      duration, main, dropped, early, late = outcome.stdout.scan(/\d+/).map(&:to_i)

      data = read_profile(in_folder("p.pb.gz"))
      expect(data).to include(mode:, frequency: 10_000)
      expect(weight_of(data, "Object#redefine")).to be > 0
      expect(data[:samples].size).to be > 50
      if mode == :wall
        expect(main).to be_within((duration * 0.01) + 1e6).of(duration)
      else
        expect(main).to be <= (duration * 1.01) + 1e6
      end
      expect([dropped, late - early]).to match([0, be < 30_000])
    end
  end
end
