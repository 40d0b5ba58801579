# frozen_string_literal: true

require "timeout"

# A snapshot lets other threads run before it is finished: whatever they do then, all profiles are sound.
RSpec.describe "a snapshot while other threads run", vm: true do
  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def total(parts, threads = nil)
    parts.sum { |part| part[:samples].sum { |row| threads.nil? || threads.include?(row[2]) ? row[1] : 0 } }
  end

  # So many different methods are seen that naming them takes some milliseconds.
  def call_many_methods(count = 4000)
    time = 120_000 * Commands::SLOWNESS
    code = Array.new(count) { |n| "def many_#{n} = (limit = nanoseconds + #{time}; nil while nanoseconds < limit)" }
    singleton_class.class_eval(code.join("\n"), "many.rb")
    count.times { |n| send(:"many_#{n}") }
  end

  def start = Rperf.start(mode: :wall, frequency: 10_000)

  it "lets them go on" do
    start
    turns = 0
    other = Thread.new { loop { (turns += 1) && Thread.pass } }
    takes = [-> { Rperf.snapshot }, -> { Rperf.snapshot(clear: true) }, -> { Rperf.stop.tap { start } }]
    # Whether the other thread gets a CPU meanwhile is the machine's choice, and how many methods are seen: in one of
    # some times both are enough.
    takes.each do |take|
      times = (1..20).find do
        call_many_methods
        Thread.pass
        before = turns
        parts = take.call
        gone = turns - before
        gone.positive? && parts[:unique_frames] > 1000
      end
      expect(times).not_to be_nil
    end
  ensure
    other&.kill
  end

  it "covers a thousand threads, each with all of its time", alone: true do
    start
    before = nanoseconds
    threads = Array.new(1000) { Thread.new { Rperf.label(mine: 1) { sleep } } }
    Thread.pass until threads.all?(&:stop?)
    after = nanoseconds
    parts = Array.new(3) do
      sleep 0.02
      Rperf.snapshot
      Rperf.snapshot(clear: true)
    end
    last = nanoseconds
    parts << Rperf.stop
    # The main thread has a label set of its own if it collects.
    labelled = parts.last[:label_sets].each_index.select { |it| parts.last[:label_sets][it].key?(:mine) }
    mine = parts.last[:samples].filter_map { |row| row[2] if labelled.include?(row[3]) }.uniq
    expect(mine.size).to eq(1000)
    # A snapshot takes them one after the other: each has its own time in a part, and its life in all of them.
    lives = Hash.new(0)
    parts.each { |part| part[:samples].each { |row| lives[row[2]] += row[1] } }
    expect(lives.values_at(*mine)).to all(be_between(last - after - 5_000_000, nanoseconds - before))
    expect(total(parts, [1])).to be_within(20_000_000).of(parts.sum { |part| part[:duration_ns] })
  ensure
    threads&.each(&:kill)
  end

  it "can be interrupted by Thread#raise and Timeout: the session goes on, and no interrupt is lost" do
    start
    call_many_methods(1500)
    interrupted = 0
    asking = Thread.new do
      Thread.current.report_on_exception = false
      Thread.handle_interrupt(RuntimeError => :never) do
        20.times do
          Thread.handle_interrupt(RuntimeError => :immediate) { Rperf.snapshot }
        rescue RuntimeError
          interrupted += 1
          retry
        end
      end
    end
    sent = 0
    while asking.alive? && sent < 200
      asking.raise("for the snapshot")
      sent += 1
      seen = interrupted
      Thread.pass while asking.alive? && seen == interrupted
    end
    # The last one may come after the block.
    begin
      asking.join
    rescue RuntimeError => e
      expect(e.message).to eq("for the snapshot")
    end
    expect(interrupted).to be_between(sent - 1, sent)
    20.times do |n|
      expect(Timeout.timeout(0.0005 * (n + 1)) { Rperf.snapshot }).to be_a(Hash)
    rescue Timeout::Error
      expect(Rperf).to be_running
    end
    data = Rperf.stop
    expect(total([data], [1])).to be_within((data[:duration_ns] * 0.01) + 2_000_000).of(data[:duration_ns])
  end

  it "runs handlers of signals, which may take snapshots themselves", alone: true do
    taken = 0
    previous = trap("USR2") { taken += 1 if Rperf.snapshot }
    start
    call_many_methods(1500)
    killer = Thread.new { loop { Process.kill(:USR2, Process.pid) && sleep(0.005) } }
    parts = Array.new(10) { Rperf.snapshot(clear: true) }
    killer.kill.join
    parts << Rperf.stop
    expect(taken).to be_positive
    expect(total(parts, [1])).to be_within(20_000_000).of(parts.sum { |part| part[:duration_ns] })
  ensure
    trap("USR2", previous || "DEFAULT")
  end

  it "and forks in other threads don't disturb each other" do
    start
    call_many_methods(1500)
    statuses = []
    forking = Thread.new do
      10.times do
        pid = fork do
          GC.start
          exit!(Rperf.running? || Rperf.snapshot ? 1 : 0)
        end
        statuses << Process.wait2(pid).last.exitstatus
      end
    end
    parts = []
    parts << Rperf.snapshot(clear: true) while forking.alive?
    parts << Rperf.stop
    expect(statuses).to eq([0] * 10)
    expect(total(parts, [1])).to be_within(50_000_000).of(parts.sum { |part| part[:duration_ns] })
  end

  it "in the stress of collections has all names" do
    script = write_file("stress.rb", <<~RUBY)
      require "rperf"
      METHODS = #{Commands.times(60)}
      native = Rperf.const_get(:Native)
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      METHODS.times { |n| eval("def many_\#{n} = (limit = now + 1_000_000; nil while now < limit)") }
      work = -> { METHODS.times { |n| send(:"many_\#{n}") } }
      stressed = lambda do |&taken|
        GC.stress = true
        taken.call
      ensure
        GC.stress = false
      end
      Rperf.start(mode: :wall, frequency: 10_000)
      Thread.new { loop { GC.start && sleep(0.001) } }
      work.call
      profiles = [stressed.call { native.snapshot(false) }, stressed.call { native.snapshot(true) }]
      work.call
      stressed.call { native.stop_into(profiles) }
      profiles.each do |profile|
        names = profile.samples.flat_map { |row| row[0].map(&:last) }.uniq
        p [names.grep(/many_/).size > METHODS / 2, names & ["(unknown)", "[truncated]"], profile.check]
      end
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", script, limit: 3 * Commands::TIME_LIMIT)
    expect(outcome.stdout).to eq("[true, [], []]\n" * 3)
  end

  # In a program of its own: collections without end take long in a large heap.
  it "lets them go on when a handler has raised something, and no exception is lost" do
    seen = told(<<~RUBY)
      def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      Rperf.start(mode: :wall, frequency: 10_000)
      100.times { |n| eval("def many_\#{n} = (limit = nanoseconds + 500_000; nil while nanoseconds < limit)") }
      work = -> { 100.times { |n| send(:"many_\#{n}") } }
      work.call
      turns = count = sent = 0
      turns_then = []
      taking = false
      trap("USR2") do
        # One that comes after the snapshot is of no use.
        next unless taking

        turns_then << turns
        raise "number \#{count += 1}"
      end
      Thread.new do
        loop do
          turns += 1
          # The second one comes when the first has been kept for a while.
          Process.kill(:USR2, Process.pid) && sent += 1 if taking && sent == count && count < 2 && turns % 5 == 0
          Thread.pass
        end
      end
      Thread.pass until turns.positive?
      error = nil
      # How many turns the other thread gets is the machine's choice: in one of some times enough for two.
      20.times do
        turns_then.clear
        sent = count = 0
        error = nil
        GC.stress = taking = true
        begin
          begin
            # The numbers are taken at once, and would be lost with an exception.
            Rperf.snapshot(clear: true)
          ensure
            GC.stress = taking = false
          end
        rescue RuntimeError => e
          error = e
        end
        break if turns_then.size > 1

        work.call
      end
      work.call
      frames = Rperf.stop[:unique_frames]
      print JSON.generate(raised: turns_then.size, error: error&.message, turns: turns - turns_then.last.to_i, frames:)
    RUBY
    # The second one comes as the first one leaves the block in which interrupts are off, and takes its place.
    expect(seen).to match("raised" => 2, "error" => "number 2", "turns" => be > 5, "frames" => be > 30)
  end

  it "leaves a session alone that another thread begins meanwhile" do
    10.times do
      start
      call_many_methods(300)
      stopping = Thread.new { Rperf.stop }
      Thread.pass while Rperf.running?
      Rperf.start(mode: :cpu)
      first = stopping.value
      expect(Rperf).to be_running
      limit = nanoseconds + 30_000_000
      nil while nanoseconds < limit
      second = Rperf.stop
      expect([first[:mode], second[:mode]]).to eq(%i[wall cpu])
      expect([first[:trigger_count], second[:trigger_count]]).to all(be_positive)
    end
  end
end
