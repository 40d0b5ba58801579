# frozen_string_literal: true

require "timeout"

RSpec.describe "labels" do
  # Nanoseconds by label set; nil for time without labels, which is the main thread's only.
  def by_labels(data)
    sets = data.fetch(:label_sets, [{}])
    rows = data[:samples].reject { |row| row[3].zero? && row[2] != 1 }
    times = rows.group_by { |row| sets.fetch(row[3]) }.transform_values { |group| group.sum { |row| row[1] } }
    times.transform_keys { |set| set.empty? ? nil : set }
  end

  def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # Runs for so long, and is true. Notes under `key` how long it really was.
  def spin_wall(seconds, key = nil)
    started = nanoseconds
    nil while nanoseconds < started + (seconds * 1e9)
    spent[key] += nanoseconds - started
    true
  end

  def spent = @spent ||= Hash.new(0)

  def wall(&)
    data = Rperf.start(mode: :wall, frequency: 5000, &)
    @elsewhere = data[:duration_ns] - spent.values.sum
    # Where ticks are late, one sample has the time of many.
    @late = [spent.values.sum - (data[:sampling_count] * 200_000), 0].max
    by_labels(data)
  end

  # Sampling is a matter of chance. And on a busy machine time passes elsewhere than where it is measured.
  def be_nearly(nanoseconds)
    be_between((nanoseconds * 0.7) - 30_000_000 - @late, (nanoseconds * 1.3) + 40_000_000 + @elsewhere + @late)
  end

  describe "set by Rperf.label" do
    it "are on the block's samples, and gone afterwards" do
      times = wall do
        Rperf.label(request: "abc-123", endpoint: "/api/users") { spin_wall 0.1, :labelled }
        expect(Rperf.labels).to eq({})
        spin_wall 0.1
      end
      labels = { request: "abc-123", endpoint: "/api/users" }
      expect(times).to match(nil => be_nearly(spent[nil]), labels => be_nearly(spent[:labelled]))
    end

    it "stay on the thread without a block" do
      times = wall do
        expect(Rperf.label(request: "abc-123")).to eq(request: "abc-123")
        spin_wall 0.05
        expect(Rperf.labels).to eq(request: "abc-123")
      end
      expect(times[{ request: "abc-123" }]).to be > 40_000_000
    end

    it "are merged, and taken away by nil" do
      Rperf.start
      Rperf.label(request: "abc")
      Rperf.label(phase: "db")
      expect(Rperf.labels).to eq(request: "abc", phase: "db")
      Rperf.label(request: nil)
      expect(Rperf.labels).to eq(phase: "db")
      Rperf.label(phase: nil, other: nil)
      expect(Rperf.labels).to eq({})
    end

    it "are restored after each of nested blocks, whatever happened inside" do
      Rperf.start
      Rperf.label(request: "abc") do
        Rperf.label(phase: "db") do
          expect(Rperf.labels).to eq(request: "abc", phase: "db")
          Rperf.label(request: "other", left: "behind")
        end
        expect(Rperf.labels).to eq(request: "abc")
        Rperf.label(request: nil) { expect(Rperf.labels).to eq({}) }
        expect(Rperf.labels).to eq(request: "abc")
      end
      expect(Rperf.labels).to eq({})
    end

    it "give the block's value" do
      expect(Rperf.label(a: 1) { :off }).to eq(:off)
      Rperf.start
      expect(Rperf.label(a: 1) { :on }).to eq(:on)
      expect(Rperf.label { Rperf.labels }).to eq({})
    end

    it "are ignored while nothing is profiled" do
      expect(Rperf.label(a: 1) { Rperf.labels }).to eq({})
      expect(Rperf.label(a: 1)).to eq({})
      Rperf.label(a: 1) do
        Rperf.start(mode: :wall)
        spin_wall 0.02
      end
      expect(Rperf.labels).to eq({})
      expect(by_labels(Rperf.stop).keys).to eq([nil])
    end

    it "don't go from one session to the next" do
      Rperf.start
      Rperf.label(a: 1)
      Rperf.label(b: 1) do
        Rperf.stop
        expect(Rperf.labels).to eq({})
        Rperf.start(mode: :wall)
        expect(Rperf.labels).to eq({})
        Rperf.label(c: 1) { spin_wall 0.02 }
      end
      expect(Rperf.labels).to eq({})
      expect(by_labels(Rperf.stop).keys - [nil]).to eq([{ c: "1" }])
    end

    it "are on time that a thread is blocked, and on collections" do
      data = Rperf.start(mode: :wall) do
        Rperf.label(a: 1) { sleep 0.1 }
        Rperf.label(b: 1) { 20.times { GC.start } }
      end
      state = ->(name) { data[:samples].select { |frames,| frames[0].last == name } }
      blocked = data.merge(samples: state["[GVL blocked]"])
      expect(by_labels(blocked)[{ a: "1" }]).to be > 95_000_000
      marking = by_labels(data.merge(samples: state["[GC marking]"]))
      expect(marking[{ b: "1" }]).to be > (marking.values.sum * 0.8)
    end
  end

  describe "whose block ends early" do
    {
      "by an exception" => ->(&block) { block.call and raise "x" rescue nil }, # rubocop:disable Style/RescueModifier
      "by throw" => ->(&block) { catch(:out) { Rperf.label(a: 2) { block.call and throw :out } } },
      "by break" => ->(&block) { Rperf.label(a: 2) { block.call and break } },
      "by Timeout" => lambda do |&block|
        Timeout.timeout(0.05) { Rperf.label(a: 2) { block.call and sleep } }
      rescue Timeout::Error
        nil
      end
    }.each do |how, leave|
      it "leave nothing behind #{how}" do
        Rperf.start(mode: :wall)
        Rperf.label(a: 1) do
          leave.call { Rperf.label(b: 1) { true } }
          expect(Rperf.labels).to eq(a: 1)
        end
        expect(Rperf.labels).to eq({})
        spin_wall 0.05
        expect(by_labels(Rperf.stop)[nil]).to be > 30_000_000
      end
    end

    it "leave nothing behind when Timeout comes at any moment" do
      Rperf.start(frequency: 10_000)
      20.times do |round|
        Timeout.timeout(0.0002 + (round * 0.00005)) do
          loop { Rperf.label(a: 1, round:) { Rperf.label(b: nil) { nil } } }
        end
      rescue Timeout::Error
        expect(Rperf.labels).to eq({})
      end
    end

    it "are restored in the ensure of a thread that is killed" do
      Rperf.start
      seen = Queue.new
      thread = Thread.new do
        Rperf.label(a: 1) { Rperf.label(b: 1) { seen << :inside and sleep } }
      ensure
        seen << Rperf.labels
      end
      seen.pop
      thread.kill.join
      expect(seen.pop).to eq({})
    end
  end

  describe "of threads" do
    it "are each thread's own" do
      times = wall do
        threads = Array.new(4) { |n| Thread.new { Rperf.label(thread: n) { 20.times { sleep 0.005 } } } }
        threads.each(&:join)
      end
      4.times { |n| expect(times[{ thread: n.to_s }]).to be_between(95_000_000, 1e9) }
    end

    it "are not inherited, nor by the fibers of a new thread" do
      Rperf.start
      Rperf.label(a: 1) do
        thread = Thread.new do
          [Rperf.labels, Fiber.new { Rperf.labels }.resume, Enumerator.produce { Rperf.labels }.next]
        end
        expect(thread.value).to eq([{}, {}, {}])
      end
    end

    it "don't mind a frozen one" do
      Rperf.start
      expect(Thread.new { Thread.current.freeze and Rperf.label(a: 1) { Rperf.labels } }.value).to eq({})
    end
  end

  describe "of fibers" do
    it "are inherited from the fiber that makes them, and their own from then on" do
      Rperf.start
      Rperf.label(request: "a")
      fiber = Fiber.new do
        Fiber.yield Rperf.labels
        Rperf.label(phase: "b")
        Fiber.yield Rperf.labels
        Rperf.label(request: nil, phase: nil)
        Fiber.yield Rperf.labels
        Rperf.labels
      end
      expect(fiber.resume).to eq(request: "a")
      Rperf.label(request: "changed")
      expect(fiber.resume).to eq(request: "a", phase: "b")
      expect(Rperf.labels).to eq(request: "changed")
      expect([fiber.resume, fiber.resume]).to eq([{}, {}])
    end

    it "don't leak from one to another that runs on the same thread" do
      times = wall do
        fibers = Array.new(3) do |n|
          Fiber.new do
            Rperf.label(fiber: n) do
              5.times do
                spin_wall 0.02, n
                Fiber.yield
              end
            end
          end
        end
        6.times { fibers.each { |fiber| fiber.resume && nil } && spin_wall(0.01) }
      end
      3.times { |n| expect(times[{ fiber: n.to_s }]).to be_nearly(spent[n]) }
      expect(times[nil]).to be_nearly(spent[nil])
    end

    it "don't leak into one that was there before" do
      Rperf.start(mode: :wall)
      old = Fiber.new { loop { spin_wall(0.02) && Fiber.yield(Rperf.labels) } }
      old.resume
      Rperf.label(a: 1) { expect(Array.new(3) { old.resume }.uniq).to eq([{}]) }
      expect(by_labels(Rperf.stop)[nil]).to be > 70_000_000
    end

    it "are those of where an Enumerator was first asked for an element" do
      numbers = Enumerator.new { |yielder| loop { spin_wall(0.03, Rperf.labels) && yielder.yield(Rperf.labels) } }
      times = wall do
        Rperf.label(request: "a") { expect(numbers.next).to eq(request: "a") }
        expect(numbers.next).to eq(request: "a")
        expect(Rperf.labels).to eq({})
        Rperf.label(request: "b") { expect(numbers.take(1)).to eq([{ request: "b" }]) }
      end
      %w[a b].each { |request| expect(times[{ request: }]).to be_nearly(spent[{ request: }]) }
    end

    # Stacks are taken at ticks, and become samples later: after a switch still with the labels before it.
    it "have their shares where fibers switch more often than the timer ticks" do
      data = Rperf.start(mode: :cpu, frequency: 2000) do
        fibers = { short: 0.0001, long: 0.0004 }.map do |name, seconds|
          Fiber.new { Rperf.label(turn: name) { loop { spin(seconds) || Fiber.yield } } }
        end
        2000.times { fibers.each(&:resume) }
      end
      short, long = by_labels(data).values_at({ turn: "short" }, { turn: "long" })
      expect(long / (short + long).to_f).to be_between(0.7, 0.9)
    end

    it "are right with a Fiber scheduler, blocked time included" do
      times = wall do
        FiberScheduler.run do
          3.times do |n|
            Fiber.schedule do
              Rperf.label(task: n) do
                4.times { spin_wall(0.01, n) && sleep(0.001) }
                # A task that a task starts is part of it.
                Fiber.schedule { spin_wall(0.03, n) && sleep(0.001) && spin_wall(0.03, n) }
              end
              spin_wall 0.02
            end
          end
        end
      end
      3.times { |n| expect(times[{ task: n.to_s }]).to be_nearly(spent[n]) }
      expect(times.keys - [nil]).to match_array(Array.new(3) { |n| { task: n.to_s } })
    end

    # For samples to tell which fiber they are of.
    def task0(&) = yield
    def task1(&) = yield
    def task2(&) = yield

    it "are on all samples of their fiber, and on no other's" do
      data = Rperf.start(mode: :wall, frequency: 5000) do
        FiberScheduler.run do
          3.times do |n|
            work = -> { 20.times { spin_wall(0.002) && sleep(0.001) } }
            Fiber.schedule { Rperf.label(task: n) { send(:"task#{n}", &work) } }
          end
        end
      end
      expect_own_labels(data, :task, { "task0" => "0", "task1" => "1", "task2" => "2" })
    end

    # A tick can come after the switch, and before anybody knows of it.
    it "are on all samples of their fiber also where fibers do nothing but switch" do
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        fibers = Array.new(3) do |n|
          Fiber.new { Rperf.label(task: n) { send(:"task#{n}") { loop { Fiber.yield } } } }
        end
        50_000.times { fibers.each(&:resume) }
      end
      expect_own_labels(data, :task, { "task0" => "0", "task1" => "1", "task2" => "2" })
      unlabelled = data[:samples].reject { |frames,| frames.any? { |_, name| name.match?(/task|label/) } }
      expect(unlabelled.map { |sample| label_of(data, :task, sample) }.uniq).to eq([nil])
    end

    # The VM says nothing of a switch in which an interrupt comes.
    it "are their own after a switch that a Timeout has ended" do
      late = Class.new(StandardError)
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        other = Fiber.new { Rperf.label(other: 1) { loop { Fiber.yield } } }
        200.times do |round|
          Timeout.timeout(0.0005 + (round * 0.000001), late) { loop { other.resume } }
        rescue late
          other = Fiber.new { Rperf.label(other: 1) { loop { Fiber.yield } } } unless other.alive?
          task0 { spin_wall(0.0005) }
        end
      end
      expect(labels_of(data, :other, "task0")).to eq([nil])
    end

    it "are theirs also in a session whose sections they begin themselves" do
      Rperf.start(defer: true, mode: :wall)
      Rperf.label(request: "a") { Fiber.new { Rperf.profile { spin_wall 0.03 } }.resume }
      expect(labels_of(Rperf.stop, :request, "spin_wall")).to eq(["a"])
      Rperf.start(defer: true, mode: :wall)
      thread = Thread.new { Rperf.label(a: 1) { Fiber.new { Rperf.profile(b: 2) { Rperf.labels } }.resume } }
      expect(thread.value).to eq(a: 1, b: 2)
    end

    it "are right where a new fiber blocks at once" do
      times = wall { Rperf.label(page: 1) { Enumerator.new { |pages| pages << sleep(0.05) }.next } }
      expect(times[{ page: "1" }]).to be > 45_000_000
    end
  end

  describe "as text" do
    it "are keys and values of any kind, by to_s" do
      odd = Class.new { def to_s = "odd" }.new
      no_string = Class.new { def to_s = 5 }.new
      Rperf.start(mode: :wall)
      labels = { "text" => :symbol, number: 5, none: false, list: [1], odd:, no_string: }
      Rperf.label(**labels) do
        expect(Rperf.labels).to eq(labels.transform_keys(&:to_sym))
        spin_wall 0.02
      end
      set = Rperf.stop[:label_sets].last
      expect(set).to include(text: "symbol", number: "5", none: "false", list: "[1]", odd: "odd")
      expect(set[:no_string]).to match(/\A#<#<Class:/)
    end

    it "are UTF-8, with what is not replaced" do
      values = {
        latin: "caf\xE9".dup.force_encoding("ISO-8859-1"),
        wide: "wide é".encode("UTF-16LE"),
        bytes: "/caf\xC3\xA9/\xFF".b,
        broken: "a\xFFb",
        unknown: "x".dup.force_encoding("UTF-7"),
        empty: ""
      }
      Rperf.start(mode: :wall)
      Rperf.label(**values) { spin_wall 0.02 }
      data = Rperf.stop
      expected = { latin: "café", wide: "wide é", bytes: "/café/\uFFFD", broken: "a\uFFFDb", unknown: "x", empty: "" }
      expect(data[:label_sets].last).to eq(expected)
      Rperf.save(in_folder("p.pb.gz"), data)
      expect(read_profile(in_folder("p.pb.gz"))[:label_sets]).to include(expected)
    end

    it "are in pprof with all their values, whatever the keys" do
      Rperf.start(mode: :wall)
      Rperf.label(thread: "t", thread_seq: 9, "%GVL": "x", request: "r", "": "nameless") { spin_wall 0.02 }
      data = Rperf.stop
      Rperf.save(in_folder("p.pb.gz"), data)
      read = read_profile(in_folder("p.pb.gz"))
      expect(by_labels(read)).to eq(by_labels(data))
    end

    it "are let through where to_s raises" do
      failing = Class.new { def to_s = raise(KeyError, "mine") }.new
      Rperf.start
      expect { Rperf.label(failing:) { nil } }.to raise_error(KeyError, "mine")
      expect(Rperf.labels).to eq({})
    end
  end

  # Labels that are put on again are the same object as before.
  describe "that are put on again" do
    # What the program sees, each time the block has put a label on.
    def seen(*values) = values.map { |value| Rperf.label(a: value) { Rperf.labels[:a] } }

    it "are what was given, also where the text is the same" do
      Rperf.start
      values = [1, "1", :"1", 1.0, true, "true", false, "caf\u00E9", "caf\u00E9".b, ""] * 3
      expect(seen(*values)).to eq(values)
      expect(seen(*values).map(&:class)).to eq(values.map(&:class))
      expect(seen(*values).map { |it| it.encoding if it.is_a?(String) })
        .to eq(values.map { |it| it.encoding if it.is_a?(String) })
    end

    it "are another's when the program changes its String" do
      value = +"a"
      data = Rperf.start(mode: :wall) do
        3.times do
          Rperf.label(text: value) do
            expect(Rperf.labels).to eq(text: value)
            value << "b"
            spin_wall 0.02
            expect(Rperf.labels).to eq(text: value.chop)
          end
        end
      end
      expect(data[:label_sets] - [{}]).to eq([{ text: "a" }, { text: "ab" }, { text: "abb" }])
    end

    it "are asked for their text again where that can change" do
      count = 0
      counter = Object.new
      counter.define_singleton_method(:to_s) { (count += 1).to_s }
      data = Rperf.start(mode: :wall) { 3.times { Rperf.label(counter:) { spin_wall 0.02 } } }
      expect(data[:label_sets] - [{}]).to eq([{ counter: "1" }, { counter: "2" }, { counter: "3" }])
    end

    it "are those of what they are added to" do
      Rperf.start
      inner = ->(**outer) { Rperf.label(**outer) { Rperf.label(b: 1, c: 2) { Rperf.labels } } }
      3.times do
        expect(inner[a: 1]).to eq(a: 1, b: 1, c: 2)
        expect(inner[a: 2]).to eq(a: 2, b: 1, c: 2)
        expect(inner[b: 2]).to eq(b: 1, c: 2)
        expect(inner[b: nil]).to eq(b: 1, c: 2)
        expect(Rperf.label(c: 2, b: 1) { Rperf.labels.to_a }).to eq([[:c, 2], [:b, 1]])
        expect(Rperf.label { Rperf.labels }).to eq({})
      end
    end

    it "are each thread's own, and let go of with the session" do
      sets = ObjectSpace.each_object(Rperf.const_get(:Native)::LabelSet)
      Rperf.start
      label = -> { 3.times { Rperf.label(a: 1) { Fiber.new { Rperf.labels }.resume } } }
      in_fiber = -> { label.call && Fiber.new { Rperf.labels }.resume }
      expect(Array.new(4) { Thread.new(&in_fiber).value }.uniq).to eq([{}])
      100.times { |n| 3.times { Rperf.label(a: n) { nil } } }
      expect(sets.count).to be > 100
      Rperf.stop
      GC.start
      expect(sets.count).to be < 20
    end
  end

  describe "and the data" do
    it "number the sets, with equal ones as one, from the empty one on" do
      data = Rperf.start(mode: :wall) do
        2.times do
          Rperf.label(a: 1, b: 2) { spin_wall 0.02 }
          Rperf.label(b: "2", a: "1") { spin_wall 0.02 }
        end
      end
      sets = data[:label_sets]
      expect(sets).to eq(sets.uniq).and include({ a: "1", b: "2" })
      expect(sets.first).to eq({})
      expect(data[:label_sets]).to be_frozen.and all(be_frozen)
      expect(data[:samples].map { |row| row[3] }.uniq).to include(1)
    end

    it "have no sets where no labels were used" do
      expect(Rperf.start(mode: :wall) { spin_wall 0.02 }).not_to include(:label_sets)
    end

    it "have the sets of raw samples too" do
      data = Rperf.start(mode: :wall, aggregate: false) { Rperf.label(a: 1) { spin_wall 0.05 } }
      expect(by_labels(data)[{ a: "1" }]).to be > 30_000_000
    end

    it "count the samples for whose labels there was no room" do
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        # Text takes room too.
        3.times { |n| Rperf.label(text: n.to_s + ("x" * (40 << 20))) { spin_wall 0.03 } }
      end
      expect(data[:label_sets].size).to eq(2)
      refused = data[:samples].select { |row| row[3].zero? && row[0].any? { |_, name| name.include?("spin_wall") } }
      count = refused.sum { |row| row[4] }
      # Some more can be at the very end of the block.
      expect(data[:unlabelled_samples]).to be_between(count, count + 10)
      Rperf.save(in_folder("p.pb.gz"), data)
      text = Zlib.gunzip(File.binread(in_folder("p.pb.gz")))
      refused = data[:unlabelled_samples].to_s.gsub(/(?<=\d)(?=(\d{3})+$)/, ",")
      expect(text).to match(/\b#{refused} samples? without their labels/n)
      Rperf.save(in_folder("p.txt"), data)
      expect(File.read(in_folder("p.txt"))).to include("samples without their labels")
    end
  end

  it "cost no memory for sets that no sample was taken with", if: RUBY_PLATFORM.include?("linux") do
    Rperf.start(frequency: 1)
    make = lambda do |count|
      count.times { |n| Rperf.label(request: "#{n} #{"x" * 100}") { nil } }
      GC.start
      Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1])
    end
    # The heap of a program may still grow in one round, a leak grows in each.
    expect(Array.new(4) { make[50_000] }.each_cons(2).map { |before, after| after - before }.min).to be < 5000
  end

  it "survive compaction and GC.stress, and are right after it" do
    Rperf.start(mode: :wall, frequency: 10_000)
    Rperf.label(a: "kept") do
      GC.stress = true
      Fiber.new { Rperf.label(b: "x") { [1].to_s } }.resume
      GC.stress = false
      GC.compact
      expect(Rperf.labels).to eq(a: "kept")
    end
    GC.compact
    expect(by_labels(Rperf.stop).keys).to include({ a: "kept" })
  ensure
    GC.stress = false
  end

  it "are ignored in other Ractors, with and without a session" do
    script = write_file("ractor.rb", <<~RUBY)
      require "rperf"
      Warning[:experimental] = false
      ask = -> { Ractor.new { [Rperf.label(a: 1) { Rperf.labels }, Rperf.label(a: 1), Rperf.profile(a: 1) { 5 }] } }
      answer = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      p answer[ask.call]
      Rperf.start
      Rperf.label(a: 1) { p answer[ask.call] }
      print Rperf.labels
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", script)
    expect([outcome.stdout, outcome.stderr]).to eq(["[{}, {}, 5]\n[{}, {}, 5]\n{}", ""])
  end

  it "are ignored in a forked child until it starts a session of its own" do
    script = write_file("fork.rb", <<~'RUBY')
      require "rperf"
      Rperf.start(mode: :wall)
      Rperf.label(parent: 1) do
        pid = fork do
          print [Rperf.labels, Rperf.label(a: 1) { Rperf.labels }]
          Rperf.start(mode: :wall)
          print [Rperf.labels, Fiber.new { Rperf.labels }.resume, Rperf.label(child: 1) { sleep 0.02; Rperf.labels }]
          print Rperf.stop[:label_sets]
        end
        Process.wait(pid)
        print $?.exitstatus, Rperf.labels
      end
      print Rperf.labels
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", script)
    expected = '[{}, {}][{}, {}, {child: 1}][{}, {child: "1"}]0{parent: 1}{}'
    expect([outcome.stdout, outcome.stderr]).to eq([expected, ""])
  end
end
