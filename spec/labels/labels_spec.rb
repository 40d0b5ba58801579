# frozen_string_literal: true

require "timeout"

RSpec.describe "labels", vm: true do
  include LabelTimes

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
        spin_wall 0.1
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
        Rperf.label(c: 1) { spin_wall 0.1 }
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
      labelled = marking.select { |set, _| set&.fetch(:b, nil) == "1" }
      expect(labelled.values.sum).to be > (marking.values.sum * 0.8)
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

  describe "as text" do
    it "are keys and values of any kind, by to_s" do
      odd = Class.new { def to_s = "odd" }.new
      no_string = Class.new { def to_s = 5 }.new
      Rperf.start(mode: :wall)
      labels = { "text" => :symbol, number: 5, none: false, list: [1], odd:, no_string: }
      Rperf.label(**labels) do
        expect(Rperf.labels).to eq(labels.transform_keys(&:to_sym))
        spin_wall 0.1
      end
      set = own_label_sets(Rperf.stop).last
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
      Rperf.label(**values) { spin_wall 0.1 }
      data = Rperf.stop
      expected = { latin: "café", wide: "wide é", bytes: "/café/\uFFFD", broken: "a\uFFFDb", unknown: "x", empty: "" }
      expect(own_label_sets(data).last).to eq(expected)
      Rperf.save(path_to("p.pb.gz"), data)
      expect(read_profile(path_to("p.pb.gz"))[:label_sets]).to include(expected)
    end

    it "are in pprof with all their values, whatever the keys" do
      Rperf.start(mode: :wall)
      Rperf.label(thread: "t", thread_seq: 9, "%GVL": "x", request: "r", "": "nameless") { spin_wall 0.1 }
      data = Rperf.stop
      Rperf.save(path_to("p.pb.gz"), data)
      read = read_profile(path_to("p.pb.gz"))
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
            spin_wall 0.1
            expect(Rperf.labels).to eq(text: value.chop)
          end
        end
      end
      expect(own_label_sets(data) - [{}]).to eq([{ text: "a" }, { text: "ab" }, { text: "abb" }])
    end

    it "are asked for their text again where that can change" do
      count = 0
      counter = Object.new
      counter.define_singleton_method(:to_s) { (count += 1).to_s }
      data = Rperf.start(mode: :wall) { 3.times { Rperf.label(counter:) { spin_wall 0.1 } } }
      expect(own_label_sets(data) - [{}]).to eq([{ counter: "1" }, { counter: "2" }, { counter: "3" }])
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
          Rperf.label(a: 1, b: 2) { spin_wall 0.1 }
          Rperf.label(b: "2", a: "1") { spin_wall 0.1 }
        end
      end
      sets = data[:label_sets]
      expect(sets).to eq(sets.uniq).and include({ a: "1", b: "2" })
      expect(sets.first).to eq({})
      expect(data[:label_sets]).to be_frozen.and all(be_frozen)
      expect(data[:samples].map { |row| row[3] }.uniq).to include(1)
    end

    it "have no sets where no labels were used" do
      expect(own_label_sets(Rperf.start(mode: :wall) { spin_wall 0.1 }) - [{}]).to eq([])
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
      expect(own_label_sets(data).size).to eq(2)
      unlabelled = data[:samples].select { |row| label_of(data, :text, row).nil? }
      refused = unlabelled.select { |row| row[0].any? { |_, name| name.include?("spin_wall") } }
      count = refused.sum { |row| row[4] }
      # Some more can be at the very end of the block.
      expect(data[:unlabelled_samples]).to be_between(count, count + 10)
      Rperf.save(path_to("p.pb.gz"), data)
      text = Zlib.gunzip(File.binread(path_to("p.pb.gz")))
      refused = data[:unlabelled_samples].to_s.gsub(/(?<=\d)(?=(\d{3})+$)/, ",")
      expect(text).to match(/\b#{refused} samples? without their labels/n)
      Rperf.save(path_to("p.txt"), data)
      expect(File.read(path_to("p.txt"))).to include("samples without their labels")
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
          print Rperf.stop[:label_sets].map { |set| set.except(:"%gc") }.uniq
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
