# frozen_string_literal: true

RSpec.describe "Rperf.snapshot", vm: true do
  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def spin_wall(seconds)
    limit = nanoseconds + (seconds * 1e9)
    nil while nanoseconds < limit
  end

  def total(data, thread = nil)
    data[:samples].sum { |row| thread.nil? || row[2] == thread ? row[1] : 0 }
  end

  # A thread whose life is added to `lives`; it does something until `stop`.
  def live_thread(lives, stop)
    # Its life begins before it first runs.
    started = nanoseconds
    Thread.new do
      Rperf.label(mine: 1) { yield until stop.call }
      lives << (nanoseconds - started)
    end
  end

  # Nanoseconds of these threads in all of the parts.
  def seen_of_mine(parts)
    # A collection has a label in whatever thread it runs.
    mine = parts.flat_map do |part|
      own = part.fetch(:label_sets, [{}]).map { |set| set.except(:"%gc").any? }
      part[:samples].filter_map { |row| row[2] if own[row[3]] }
    end.uniq
    parts.sum { |part| part[:samples].sum { |row| mine.include?(row[2]) ? row[1] : 0 } }
  end

  it "gives the profile so far and goes on", alone: true do
    Rperf.start(mode: :wall)
    spin_wall 0.05
    first = Rperf.snapshot
    expect(Rperf).to be_running
    spin_wall 0.05
    second = Rperf.stop
    [first, second].each { |data| expect(total(data, 1)).to be_within(2_000_000).of(data[:duration_ns]) }
    expect(first[:duration_ns]).to be > 45_000_000
    expect(second[:duration_ns]).to be > first[:duration_ns] + 45_000_000
    expect(second[:start_time_ns]).to eq(first[:start_time_ns])
    Rperf.save(path_to("snap.pb.gz"), first)
    expect(read_profile(path_to("snap.pb.gz"))[:samples]).to match_array(first[:samples])
  end

  it "is nil when profiling is off" do
    expect([Rperf.snapshot, Rperf.snapshot(clear: true)]).to eq([nil, nil])
  end

  it "refuses what it can't do, and names it" do
    expect { Rperf.snapshot(clear: nil) }.to raise_error(ArgumentError, /\Aclear: must be true or false, not nil\z/)
    Rperf.start(aggregate: false)
    [true, false].each do |clear|
      expect { Rperf.snapshot(clear:) }.to raise_error(Rperf::Error, /no snapshots of a session with aggregate: false/)
    end
    expect(Rperf.stop).to include(:raw_samples)
  end

  it "has threads that are blocked, with their stacks and their time so far", alone: true do
    def self.wait_for_ever = Queue.new.pop
    thread = Thread.new { wait_for_ever }
    Thread.pass until thread.stop?
    Rperf.start(mode: :wall)
    3.times do
      sleep 0.03
      data = Rperf.snapshot(clear: true)
      popping = data[:samples].select do |frames,|
        names = frames.map(&:last)
        names.first(2) == ["[GVL blocked]", "Thread::Queue#pop"] && names[2].end_with?("wait_for_ever")
      end
      expect(popping.sum { |row| row[1] }).to be_within(2_000_000).of(data[:duration_ns])
    end
  ensure
    thread&.kill
  end

  describe "with clear: true" do
    it "begins anew", alone: true do
      Rperf.start(mode: :wall)
      def self.first_part = spin_wall(0.05)
      def self.second_part = spin_wall(0.05)
      first_part
      data = Rperf.snapshot(clear: true)
      second_part
      rest = Rperf.stop
      expect([weight_of(data, "first_part"), weight_of(rest, "second_part")]).to all(be > 40_000_000)
      expect([weight_of(data, "second_part"), weight_of(rest, "first_part")]).to eq([0, 0])
      expect(rest[:start_time_ns]).to be_within(20_000_000).of(data[:start_time_ns] + data[:duration_ns])
      [data, rest].each do |part|
        expect(total(part, 1)).to be_within(20_000_000).of(part[:duration_ns])
        most = [200, part[:duration_ns] * 2 / 1_000_000].max
        expect(part).to include(sampling_count: be_between(10, most), trigger_count: be_between(10, most))
        expect(part).to include(detected_thread_count: Thread.list.size, dropped_samples: 0)
      end
    end

    it "can be empty", alone: true do
      Rperf.start
      data = Array.new(3) { Rperf.snapshot(clear: true) }
      expect(data.sum { |part| total(part) }).to be < 20_000_000
    end

    # Threads that run, wait, block, collect garbage, and end, in each of the parts.
    def load_threads(stop, lives)
      queues = Array.new(2) { Queue.new }
      queues[0] << :token
      work = [
        -> { spin_wall 0.002 },
        -> { sleep 0.001 },
        -> { Array.new(2000) { |n| n.to_s * 10 } },
        -> { queues[1] << queues[0].pop(timeout: 0.01) },
        -> { queues[0] << queues[1].pop(timeout: 0.01) }
      ]
      work.map { |task| live_thread(lives, stop, &task) }
    end

    it "gives parts that add up to what the threads have lived" do
      stop = false
      lives = []
      Rperf.start(mode: :wall)
      started = nanoseconds
      threads = load_threads(-> { stop }, lives)
      parts = Array.new(5) do
        sleep 0.2
        Rperf.snapshot(clear: true)
      end
      stop = true
      threads.each(&:join)
      parts << Rperf.stop
      main = nanoseconds - started
      expect(seen_of_mine(parts)).to be_within(lives.sum * 0.01).of(lives.sum)
      expect(parts.sum { |part| total(part, 1) }).to be_within(main * 0.01).of(main)
      parts.each do |part|
        expect(total(part, 1)).to be_within((part[:duration_ns] * 0.01) + 1_000_000).of(part[:duration_ns])
      end
    end

    it "gives parts that add up to the CPU time used", alone: true do
      stop = false
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      Rperf.start(mode: :cpu)
      threads = load_threads(-> { stop }, [])
      parts = Array.new(5) do
        sleep 0.1
        Rperf.snapshot(clear: true)
      end
      stop = true
      threads.each(&:join)
      parts << Rperf.stop
      used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before
      expect(parts.sum { |part| total(part) }).to be_within(used * 0.1).of(used)
    end

    it "keeps the numbers of threads, and their labels" do
      Rperf.start(mode: :wall)
      threads = Array.new(2) { |n| Thread.new { Rperf.label(thread: n) { sleep } } }
      Thread.pass until threads.all?(&:stop?)
      seen = Array.new(3) do
        sleep 0.02
        data = Rperf.snapshot(clear: true)
        labelled = data[:samples].reject { |row| row[3].zero? }
        labelled.to_h { |row| [row[2], data[:label_sets][row[3]].except(:"%gc")] }.reject { |_, set| set.empty? }
      end
      expect(seen.first.values).to contain_exactly({ thread: "0" }, { thread: "1" })
      expect(seen.uniq.size).to eq(1)
    ensure
      threads.each(&:kill)
    end

    it "lets go of the names of code that is gone" do
      Rperf.start(mode: :wall)
      sizes = Array.new(3) do |round|
        100.times do |n|
          name = :"made_#{round}_#{n}"
          singleton_class.class_eval("def #{name} = spin_wall(0.0005) # def made_0_1 = ...", __FILE__, __LINE__)
          send(name)
        end
        Rperf.snapshot(clear: true)[:unique_frames]
      end
      expect(sizes).to all(be_between(10, 200))
    end
  end

  it "can be asked for by several threads at once" do
    stop = false
    lives = []
    Rperf.start(mode: :wall)
    busy = Array.new(2) { live_thread(lives, -> { stop }) { spin_wall 0.001 } }
    parts = Queue.new
    asking = Array.new(4) do |n|
      Thread.new do
        8.times do
          data = Rperf.snapshot(clear: n.even?)
          parts << data if n.even?
          sleep rand / 500
        end
      end
    end
    asking.each(&:join)
    stop = true
    busy.each(&:join)
    parts << Rperf.stop
    seen = seen_of_mine(Array.new(parts.size) { parts.pop })
    expect(seen).to be_within(lives.sum * 0.01).of(lives.sum)
  end

  it "and stop can be asked for at once" do
    20.times do
      Rperf.start(mode: :wall, frequency: 10_000)
      results = Array.new(4) { |n| Thread.new { n.zero? ? Rperf.stop : Rperf.snapshot(clear: n.odd?) } }.map(&:value)
      expect(results[0]).to be_a(Hash)
      expect(Rperf).not_to be_running
    end
  end

  it "works in a program that rperf record profiles, but takes nothing away" do
    script = write_file("app.rb", <<~RUBY)
      require "rperf"
      sleep 0.05
      p Rperf.snapshot[:samples].empty?
      begin
        Rperf.snapshot(clear: true)
      rescue Rperf::Error => e
        print e.message
      end
    RUBY
    outcome = rperf("record", "-m", "wall", ruby, "-I#{Commands::ROOT}/lib", script)
    expect(outcome.stdout).to eq("false\nrperf record profiles this program as a whole: clear: can't be true")
    expect(total(read_profile(path_to("rperf.data")))).to be > 50_000_000
  end
end
