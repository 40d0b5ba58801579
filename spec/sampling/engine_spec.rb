# frozen_string_literal: true

require "spec_helper"
require "etc"

# The engine on real threads: that each nanosecond is there once, in its place.
RSpec.describe "the engine", vm: true, alone: true do
  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def spin(milliseconds)
    deadline = nanoseconds + (milliseconds * 1_000_000)
    nil while nanoseconds < deadline
  end

  # As long as it takes to get so much CPU time.
  def use_cpu(milliseconds)
    limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + (milliseconds / 1e3)
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
  end

  def weight(data, &) = data[:samples].select(&).sum { |row| row[1] }

  def in_state(data, name) = weight(data) { |frames,| frames.first.last == name }

  def in_method(data, name) = weight(data) { |frames,| frames.any? { |_, label| label == name } }

  def by_thread(data) = data[:samples].group_by { |row| row[2] }.transform_values { |rows| rows.sum { |row| row[1] } }

  it "gives sleep the time slept, as GVL blocked" do
    slept = 0
    data = Rperf.start(mode: :wall) do
      10.times do
        spin(5)
        before = nanoseconds
        sleep(0.02)
        slept += nanoseconds - before
      end
    end
    under_sleep = weight(data) { |frames,| frames[0].last == "[GVL blocked]" && frames[1].last == "Kernel#sleep" }
    expect(under_sleep).to be_within(slept * 0.05).of(slept)
  end

  it "adds up to each thread's life, whatever the number of GVL switches" do
    queues = Array.new(4) { Queue.new }
    lives = []
    data = Rperf.start(mode: :wall) do
      threads = Array.new(4) do |index|
        Thread.new do
          started = nanoseconds
          5_000.times { queues[(index + 1) % 4] << queues[index].pop }
          lives << (nanoseconds - started)
        end
      end
      queues[0] << :token
      threads.each(&:join)
    end
    seen = by_thread(data).except(1, 0).values
    expect(seen.size).to eq(4)
    # A thread may have to wait for its first turn, before it can look at the clock.
    bounds = lives.map { |life| be_between((life * 0.95) - 5e6, data[:duration_ns]) }
    expect(seen).to match_array(bounds)
    # Each thread has at most about one backtrace per interval and state.
    expect(data[:samples].sum { |row| row[4] }).to be < (data[:duration_ns] / 1e6 * 12) + 100
  end

  it "includes threads that are blocked from the start to the end" do
    thread = Thread.new { Queue.new.pop }
    Thread.pass until thread.stop?
    data = Rperf.start(mode: :wall) { spin(50) }
    popping = weight(data) { |frames,| frames[0].last == "[GVL blocked]" && frames[1].last == "Thread::Queue#pop" }
    expect(popping).to be_within(5e6).of(data[:duration_ns])
  ensure
    thread&.kill
  end

  it "adds up to the CPU time in cpu mode, with short-lived threads and without sleep" do
    used = nil
    data = Rperf.start(mode: :cpu) do
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      # What starts them isn't theirs, and takes an emulator long.
      200.times { Thread.new { spin(0.5 * Commands::SLOWNESS) }.join }
      sleep(0.1)
      spin(100)
      used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before
    end
    expect(weight(data) { true }).to be_within(used * 0.2).of(used)
    expect(in_state(data, "[GVL blocked]")).to eq(0)
  end

  it "leaves out what a thread used before the session" do
    tasks = Queue.new
    done = Queue.new
    thread = Thread.new { while (milliseconds = tasks.pop) do done << use_cpu(milliseconds) end }
    work = lambda do |milliseconds|
      tasks << milliseconds
      done.pop
    end
    %i[cpu wall cpu].each do |mode|
      work.call(100)
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      data = Rperf.start(mode:) { work.call(20) }
      used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before
      cpu = data[:samples].sum { |row| row[mode == :wall ? 5 : 1] }
      expect(cpu).to be_between(5_000_000, used + 2_000_000)
    end
  ensure
    tasks << nil
    thread&.join
  end

  it "carries the CPU time beside the wall time" do
    used = nil
    data = Rperf.start(mode: :wall) do
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      spin(100)
      sleep(0.1)
      used = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - before
    end
    cpu = data[:samples].sum { |row| row[5] }
    expect(cpu).to be_within(5_000_000 + (used * 0.1)).of(used)
    expect(cpu).to be < data[:duration_ns] - 80_000_000
  end

  it "shows collections as frames of their own, and counts their time once" do
    data = Rperf.start(mode: :wall) do
      keep = Array.new(200_000) { |index| [index] }
      10.times { GC.start }
      keep.clear
    end
    expect(in_state(data, "[GC marking]")).to be > 0
    expect(in_method(data, "[GC sweeping]")).to be > 0
    expect(by_thread(data)[1]).to be_within(data[:duration_ns] * 0.01).of(data[:duration_ns])
  end

  # In a program of its own, whose heap is small: so there are many rounds in a second.
  it "is sound under GC.stress and compaction at the highest frequency", alone: false do
    data = told(<<~RUBY)
      def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      rounds = 0
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        deadline = nanoseconds + 1_000_000_000
        while nanoseconds < deadline
          GC.stress = true
          20.times { |index| define_singleton_method(:"made_\#{index}") { [index] }.then { |name| send(name) } }
          GC.stress = false
          GC.compact
          rounds += 1
        end
      end
      main = data[:samples].sum { |row| row[2] == 1 ? row[1] : 0 }
      print JSON.generate(rounds:, main:, duration_ns: data[:duration_ns])
    RUBY
    expect(data["rounds"]).to be_positive
    expect(data["main"]).to be_within(data["duration_ns"] * 0.01).of(data["duration_ns"])
  end

  it "keeps raw samples with their times" do
    data = Rperf.start(mode: :wall, aggregate: false) { spin(100) }
    times = data[:raw_samples].map { |row| row[6] }
    expect(times).to eq(times.sort)
    expect(times.last).to be_within(20_000_000).of(data[:duration_ns])
    expect(data[:raw_samples].size).to be > 20
  end

  it "works without a signal" do
    data = Rperf.start(mode: :wall, signal: false) { spin(200) }
    expect(data[:sampling_count]).to be > 50
    expect(in_method(data, "Process.clock_gettime")).to be > 0
  end

  describe "the timer's thread", if: RUBY_PLATFORM.include?("linux") do
    # How often it wakes up while the program does `work`.
    def wakeups_during(work, frequency: 1000)
      told(<<~RUBY)
        Rperf.start(mode: :wall, frequency: #{frequency})
        worker = Dir["/proc/self/task/*"].find { |task| File.read("\#{task}/comm").strip == "rperf" }
        wakeups = -> { File.read("\#{worker}/status")[/^voluntary_ctxt_switches:\\s+(\\d+)/, 1].to_i }
        sleep 0.2
        before = wakeups.call
        #{work}
        print wakeups.call - before
        Rperf.stop
      RUBY
    end

    # The count is read from outside: where a program reads it, the timer ticks meanwhile.
    it "sleeps while the program does" do
      wakeups = nil
      program = 'Rperf.start(mode: :wall); puts "started"; $stdout.flush; sleep'
      run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", "-rrperf", "-e", program) do |pid|
        worker = Dir["/proc/#{pid}/task/*"].find { |task| File.read(File.join(task, "comm")).strip == "rperf" }
        woken_up = -> { File.read(File.join(worker, "status"))[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i }
        sleep 0.5
        before = woken_up.call
        sleep 1
        wakeups = woken_up.call - before
      ensure
        Process.kill(:TERM, pid)
      end
      expect(wakeups).to be < 6
    end

    # A tick for each time that it ends a rest would be 200.
    it "wakes up for work alone in a program that works for a moment and sleeps" do
      work = <<~RUBY
        clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
        200.times { work_until = clock.call + 100_000; nil while clock.call < work_until; sleep 0.01 }
      RUBY
      expect(wakeups_during(work)).to be < 150
      expect(wakeups_during(work, frequency: 99)).to be < 60
    end
  end

  it "survives forks while other threads switch, and lets children profile", alone: false do
    script = write_file("forks.rb", <<~RUBY)
      require "rperf"
      Rperf.start(mode: :wall)
      stop = false
      threads = Array.new(3) { Thread.new { sleep 0.0003 until stop } }
      60.times do |round|
        pid = fork do
          if round.odd?
            Rperf.start(mode: :cpu) { Thread.new { 100.times { "a" * 10 } }.join }
          end
          exit!(7) if (round % 4).zero?
        end
        Process.wait(pid)
        abort "child \#{round}: \#{$?.inspect}" unless [0, 7].include?($?.exitstatus)
      end
      stop = true
      threads.each(&:join)
      print Rperf.stop[:sampling_count].positive?
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", script)
    expect([outcome.stdout, outcome.stderr]).to eq(%w[true] + [""])
  end
end
