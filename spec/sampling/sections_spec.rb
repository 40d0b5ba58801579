# frozen_string_literal: true

require "timeout"

RSpec.describe "a deferred session", vm: true do
  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # Runs for so long; returns how long it was.
  def spin_wall(seconds)
    started = nanoseconds
    nil while nanoseconds < started + (seconds * 1e9)
    nanoseconds - started
  end

  def total(data, thread: nil, label: nil)
    sets = data.fetch(:label_sets, [{}])
    rows = data[:samples].select { |row| (thread.nil? || row[2] == thread) && (label.nil? || sets[row[3]] == label) }
    rows.sum { |row| row[1] }
  end

  # The time measured around a section is a little more than the section's.
  def be_nearly(nanoseconds)
    be_within((nanoseconds * 0.02) + (3_000_000 * Commands::SLOWNESS)).of(nanoseconds)
  end

  # Which of two parts a sample falls in is a matter of chance, and on a busy machine there are few of them.
  def be_roughly(nanoseconds) = be_within((nanoseconds * 0.5) + 20_000_000).of(nanoseconds)

  # The block's value, and how long it took.
  def timed
    started = nanoseconds
    value = yield
    [value, nanoseconds - started]
  end

  it "profiles what runs in Rperf.profile, with its labels", alone: true do
    Rperf.start(defer: true, mode: :wall)
    spin_wall 0.05
    _, users = timed { Rperf.profile(endpoint: "/users") { spin_wall(0.05) && sleep(0.02) } }
    spin_wall 0.05
    sleep 0.05
    _, health = timed { Rperf.profile(endpoint: "/health") { spin_wall 0.05 } }
    spin_wall 0.05
    data = Rperf.stop
    expect(total(data, thread: 1)).to be_nearly(users + health)
    expect(total(data, label: { endpoint: "/users" })).to be_roughly(users)
    expect(total(data, label: { endpoint: "/health" })).to be_roughly(health)
    expect(data[:duration_ns]).to be > 300_000_000
  end

  it "is empty without sections" do
    data = Rperf.start(defer: true) { spin_wall 0.05 }
    expect([data[:samples], data[:sampling_count]]).to eq([[], 0])
  end

  it "gives the block's value, and lets its exceptions, throw and break through" do
    Rperf.start(defer: true, mode: :wall)
    expect(Rperf.profile(a: 1) { :value }).to eq(:value)
    expect { Rperf.profile(a: 1) { raise KeyError, "mine" } }.to raise_error(KeyError, "mine")
    catch(:out) { Rperf.profile(a: 1) { throw :out } }
    Rperf.profile(a: 1) { break }
    expect(Rperf.labels).to eq({})
    spin_wall 0.05 * Commands::SLOWNESS
    expect(total(Rperf.stop)).to be < 20_000_000 * Commands::SLOWNESS
  end

  it "counts sections that are nested once, and merges their labels", alone: true do
    Rperf.start(defer: true, mode: :wall)
    _, outer = timed do
      Rperf.profile(endpoint: "/users") do
        Rperf.profile(phase: "db") do
          expect(Rperf.labels).to eq(endpoint: "/users", phase: "db")
          spin_wall 0.04
        end
        expect(Rperf.labels).to eq(endpoint: "/users")
        Rperf.label(phase: "auth") { spin_wall 0.04 }
      end
    end
    data = Rperf.stop
    expect(total(data, thread: 1)).to be_nearly(outer)
    %w[db auth].each { |phase| expect(total(data, label: { endpoint: "/users", phase: })).to be > 1_000_000 }
  end

  it "counts the time of all threads while a section is open, and none else", alone: true do
    Rperf.start(defer: true, mode: :wall)
    stop = false
    running = Thread.new { Rperf.label(thread: "running") { sleep 0.0005 until stop } }
    blocked = Thread.new { Rperf.label(thread: "blocked") { Queue.new.pop(timeout: 5) } }
    Thread.pass until blocked.stop?
    lengths = Array.new(10) do
      sleep 0.01
      timed { Rperf.profile { sleep 0.02 } }.last
    end
    stop = true
    running.join
    blocked.kill
    data = Rperf.stop
    expect(total(data, thread: 1)).to be_nearly(lengths.sum)
    expect(total(data, label: { thread: "running" })).to be_within(30_000_000).of(lengths.sum)
    expect(total(data, label: { thread: "blocked" })).to be_nearly(lengths.sum)
    popping = data[:samples].select { |frames,| frames.map(&:last).first(2) == ["[GVL blocked]", "Thread::Queue#pop"] }
    expect(total(data.merge(samples: popping), label: { thread: "blocked" })).to be_nearly(lengths.sum)
  end

  it "counts sections of several threads while any of them is open", alone: true do
    Rperf.start(defer: true, mode: :wall)
    spans = Queue.new
    threads = Array.new(4) do |n|
      Thread.new do
        sleep n * 0.03
        started = nanoseconds
        Rperf.profile(thread: n) { sleep 0.05 }
        spans << (started..nanoseconds)
      end
    end
    threads.each(&:join)
    spin_wall 0.05
    data = Rperf.stop
    4.times { |n| expect(total(data, label: { thread: n.to_s })).to be > 45_000_000 }
    expect(total(data, thread: 1)).to be_nearly(covered(Array.new(4) { spans.pop }))
  end

  # Nanoseconds that are in any of the spans.
  def covered(spans)
    reached = 0
    spans.sort_by(&:begin).sum do |span|
      length = [span.end - [span.begin, reached].max, 0].max
      reached = [reached, span.end].max
      length
    end
  end

  it "knows threads that came and went between sections", alone: true do
    Rperf.start(defer: true, mode: :wall)
    lengths = Array.new(20) do |n|
      Array.new(5) { Thread.new { sleep 0.0005 } }.each(&:join)
      gate = Queue.new
      threads = Array.new(2) { Thread.new { gate.pop } }
      Thread.pass until threads.all?(&:stop?)
      GC.start if (n % 5).zero?
      length = timed { Rperf.profile { Thread.new { sleep 0.001 }.join } }.last
      gate.close
      threads.each(&:join)
      length
    end
    data = Rperf.stop
    main = total(data, thread: 1)
    expect(main).to be_within(lengths.sum * 0.1).of(lengths.sum)
    # Two threads were blocked throughout each section.
    popping = data[:samples].select { |frames,| frames[1]&.last == "Thread::Queue#pop" }
    expect(popping.sum { |row| row[1] }).to be_within((main * 0.1) + 2_000_000).of(main * 2)
  end

  it "gives short sections their share", alone: true do
    Rperf.start(defer: true, mode: :wall, frequency: 2000)
    # By clocks within the sections and around them, between which the thread may lose the CPU.
    inside = Hash.new(0)
    around = Hash.new(0)
    300.times do |n|
      part = (n % 3).zero? ? :long : :short
      seconds = part == :long ? 0.0012 : 0.0003
      spent, length = timed { Rperf.profile(part:) { spin_wall seconds } }
      inside[part] += spent
      around[part] += length
      spin_wall 0.0005
    end
    data = Rperf.stop
    seen = total(data, thread: 1)
    expect(seen).to be_between(inside.values.sum * 0.95, around.values.sum * 1.05)
    expect(total(data, label: { part: "short" })).to be_roughly(inside[:short])
    # And no stack from outside of them.
    in_sections = data[:samples].select { |frames,| frames.any? { |_, name| name == "Rperf.profile" } }
    expect(in_sections.sum { |row| row[1] }).to be > seen * 0.97
  end

  it "counts the CPU time of sections in cpu mode", alone: true do
    Rperf.start(defer: true, mode: :cpu)
    cpu = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) }
    # By clocks within the sections and around them: to begin and to end one takes time, too.
    inside = around = 0
    other = Thread.new { loop { spin(0.001) && sleep(0.001) } }
    20.times do
      before = cpu.call
      Rperf.profile(mine: 1) do
        begun = cpu.call
        spin 0.005
        inside += cpu.call - begun
      end
      around += cpu.call - before
      spin 0.005
    end
    other.kill.join
    expect(total(Rperf.stop, thread: 1)).to be_between((inside * 0.95) - 2_000_000, (around * 1.05) + 2_000_000)
  end

  it "has no ticks and no hooks outside of sections", alone: true, if: RUBY_PLATFORM.include?("linux") do
    script = write_file("outside.rb", <<~RUBY)
      require "rperf"
      Rperf.start(mode: :wall, defer: true)
      worker = Dir["/proc/self/task/*"].find { |task| File.read("\#{task}/comm").strip == "rperf" }
      wakeups = -> { File.read("\#{worker}/status").scan(/ctxt_switches:\\s+(\\d+)/).flatten.sum(&:to_i) }
      Rperf.profile { sleep 0.05 }
      sleep 0.05
      before = wakeups.call
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      [1].sum while Process.clock_gettime(Process::CLOCK_MONOTONIC) < started + 0.3
      print wakeups.call - before
      Rperf.stop
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", script)
    expect([outcome.stdout.to_i, outcome.stderr]).to eq([0, ""])
  end

  it "has hooks while a section runs, and else none" do
    hooks = -> { Rperf.const_get(:Native).hooks? }
    Rperf.start(defer: true)
    expect([hooks.call, Rperf.profile { hooks.call }, hooks.call]).to eq([false, true, false])
    Rperf.stop
    Rperf.start
    expect([hooks.call, Rperf.stop && hooks.call]).to eq([true, false])
  end

  it "has room for the labels of any number of sections" do
    Rperf.start(defer: true, frequency: 1)
    70_000.times { |n| Rperf.profile(request: n) { nil } }
    Rperf.stop.then { |data| expect(data[:unlabelled_samples]).to eq(0) }
    Rperf.start(defer: true, mode: :wall)
    70_000.times { |n| Rperf.profile(request: n) { nil } }
    Rperf.profile(last: 1) { spin_wall 0.3 }
    data = Rperf.stop
    expect(data[:label_sets].size).to be < 30_000
    expect(labels_of(data, :last, "spin_wall")).to eq(["1"])
  end

  it "ends its section when Timeout comes at any moment, or its thread is killed" do
    Rperf.start(defer: true, mode: :wall)
    20.times do |round|
      Timeout.timeout(0.0002 + (round * 0.00005)) { loop { Rperf.profile(round:) { nil } } }
    rescue Timeout::Error
      nil
    end
    thread = Thread.new { Rperf.profile(a: 1) { sleep } }
    Thread.pass until thread.stop?
    thread.kill.join
    expect(Rperf.labels).to eq({})
    Rperf.snapshot(clear: true)
    spin_wall 0.05
    expect(Rperf.stop[:samples]).to eq([])
  end

  it "takes a section that is open over its end, or over another session's begin", alone: true do
    Rperf.start(defer: true, mode: :wall)
    Rperf.profile do
      Rperf.stop
      Rperf.start(defer: true, mode: :wall)
    end
    length = Rperf.profile { spin_wall 0.03 }
    spin_wall 0.03
    expect(total(Rperf.stop, thread: 1)).to be_nearly(length)
  end

  it "has snapshots, in sections and between them", alone: true do
    Rperf.start(defer: true, mode: :wall)
    lengths = []
    lengths << Rperf.profile { spin_wall 0.03 }
    spin_wall 0.03
    parts = [Rperf.snapshot(clear: true)]
    Rperf.profile do
      lengths << spin_wall(0.03)
      parts << Rperf.snapshot(clear: true)
      lengths << spin_wall(0.03)
    end
    spin_wall 0.03
    parts << Rperf.snapshot << Rperf.stop
    # A snapshot takes some time too.
    expected = [*lengths, lengths.last].map { |length| be_between(length, length + 50_000_000) }
    expect(parts.map { |part| total(part, thread: 1) }).to match(expected)
  end

  it "lets Rperf.profile only put labels on in sessions that are not deferred", alone: true do
    data = Rperf.start(mode: :wall) do
      spin_wall 0.1
      Rperf.profile(endpoint: "/users") { spin_wall 0.1 }
    end
    expect(total(data, thread: 1)).to be_nearly(data[:duration_ns])
    expect(total(data, label: { endpoint: "/users" })).to be_roughly(data[:duration_ns] / 2)
  end

  it "needs a session and a block for Rperf.profile, and a Boolean for defer" do
    ran = false
    expect { Rperf.profile(a: 1) { ran = true } }
      .to raise_error(RuntimeError, "profiling is off; call Rperf.start (with defer: true) first")
    expect(ran).to be(false)
    expect { Rperf.profile }.to raise_error(ArgumentError, "Rperf.profile needs a block")
    expect { Rperf.start(defer: nil) }.to raise_error(ArgumentError, /\Adefer: must be true or false, not nil\z/)
  end

  it "is sound with everything at once" do
    script = write_file("sections.rb", <<~'RUBY')
      require "rperf"
      require "timeout"
      STARTED = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) > STARTED + ARGV[1].to_f
      Rperf.start(defer: true, mode: ARGV[0].to_sym, frequency: 10_000)
      work = [
        -> { sleep rand / 2000 },
        -> { Array.new(100) { |n| n.to_s }.sort },
        -> { Thread.new { Rperf.profile(made: rand(100)) { sleep rand / 2000 } }.join },
        -> { Timeout.timeout(rand / 1000) { Rperf.profile { sleep } } rescue Timeout::Error },
        -> { Enumerator.new { |y| 3.times { |n| Rperf.label(n:) { y << n } } }.then { |e| 3.times { e.next } } },
        -> { GC.start },
        -> { GC.compact },
        -> { Process.wait(fork { Rperf.profile { 1 } rescue exit!(7); exit!(8) }); abort "child" if $?.exitstatus != 7 },
        -> { Rperf.snapshot(clear: rand(2).zero?) },
        -> { Thread.new { Thread.current.kill; sleep }.join }
      ]
      threads = Array.new(4) do |n|
        Thread.new do
          until over?
            if rand(2).zero?
              Rperf.profile(thread: n, id: rand(1000)) { 3.times { work.sample.call } }
            else
              work.sample.call
            end
          end
        end
      end
      threads.each(&:join)
      data = Rperf.stop
      Rperf.save(ARGV[2], data)
      print Rperf.labels, Thread.list.size < 4
    RUBY
    seconds = Commands::LONG ? 20 : 1.5
    %i[wall cpu].each do |mode|
      outcome = run(ruby, "-W0", "-I#{Commands::ROOT}/lib", script, mode.to_s, seconds.to_s, path_to("p.pb.gz"))
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["{}true", "", 0])
      read_profile(path_to("p.pb.gz"))
    end
  end
end
