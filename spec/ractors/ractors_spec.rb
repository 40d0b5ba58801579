# frozen_string_literal: true

require "json"

# Threads of other Ractors are profiled as those of the main one are.
RSpec.describe "other Ractors", vm: true do
  prelude = <<~'RUBY'
    require "json"
    require "rperf"
    Warning[:experimental] = false

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

    # By CPU time, so that all Ractors have the same shares on a machine of any size.
    def spin(seconds)
      ends = cpu + seconds
      nil while cpu < ends
    end

    def six(turn) = spin(turn * 0.6)
    def three(turn) = spin(turn * 0.3)
    def one(turn) = spin(turn * 0.1)

    def work(seconds)
      ends = cpu + seconds
      while cpu < ends
        six(0.004)
        three(0.004)
        one(0.004)
      end
    end

    def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take

    # Nanoseconds by Ractor (nil is the main one) and method.
    def sums(data, state = nil)
      rows = data[:samples].select { |frames,| state.nil? || frames.first.last == state }
      rows.each_with_object(Hash.new { |all, ractor| all[ractor] = Hash.new(0) }) do |(frames, weight, _, labels), all|
        names = frames.map { |frame| frame.last[/\w+\z/] }.uniq
        names.each { |name| all[data[:label_sets][labels][:"%ractor"]][name] += weight }
      end
    end
  RUBY

  define_method(:answer) do |program, *flags|
    script = write_file("ractors.rb", prelude + program)
    outcome = run(ruby, *flags, "-I#{Commands::ROOT}/lib", script)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    outcome.stdout.lines.map { |line| JSON.parse(line) }
  end

  [[:cpu, []], [:wall, []], [:cpu, ["--yjit"]]].each do |mode, flags|
    it "have their methods' shares, each under its number, #{[mode, *flags].join(" ")}", alone: true do
      shares, = answer(<<~RUBY, *flags)
        data = Rperf.start(mode: :#{mode}) { Array.new(4) { Ractor.new { work(0.7) } }.each { value_of(it) } }
        ractors = sums(data).except(nil, "other")
        puts JSON.generate(ractors.transform_values { |all| all.values_at(*%w[work six three one]) })
      RUBY
      expect(shares.size).to eq(4)
      expect(shares.keys).to all(match(/\A\d+\z/))
      shares.each_value do |all, *parts|
        expect(all).to be > 500_000_000
        # Waits for a CPU are wall time too, and come to whom they like.
        bound = mode == :wall ? 25 : 10
        parts.zip([60, 30, 10]) { |part, truth| expect(part * 100.0 / all).to be_within(bound).of(truth) }
      end
    end
  end

  it "are beside the main one, whose threads have no such label" do
    main, other, threads = answer(<<~RUBY)
      data = Rperf.start(mode: :cpu) do
        ractor = Ractor.new { three(1) }
        six(0.5)
        value_of(ractor)
      end
      all = sums(data)
      puts all[nil].slice("six", "three").to_json, all.except(nil, "other").values.first.slice("six", "three").to_json
      puts data[:detected_thread_count]
    RUBY
    expect([main, other]).to match([{ "six" => be_between(2e8, 4e8) }, { "three" => be_between(2e8, 4e8) }])
    expect(threads).to eq(2)
  end

  it "wait with their own stacks, to the end of the session too", alone: true do
    blocked, = answer(<<~'RUBY')
      def doze = sleep(0.3)
      def wait = Ractor.receive
      data = Rperf.start(mode: :wall) do
        @waiting = Ractor.new { wait }
        value_of(Ractor.new { doze })
      end
      puts sums(data, "[GVL blocked]").except(nil).values.reduce(:merge).slice("doze", "wait").to_json
      @waiting.send(1)
    RUBY
    expect(blocked).to match("doze" => be_between(2.5e8, 4e8), "wait" => be_between(2.5e8, 8e8))
  end

  it "may be many that are short", alone: true do
    count, busy, truth = answer(<<~RUBY + <<~'RUBY')
      MOMENT = #{0.003 * Commands::SLOWNESS}
    RUBY
      truth = 0
      data = Rperf.start(mode: :cpu) do
        150.times { truth += value_of(Ractor.new { before = cpu; six(MOMENT); ((cpu - before) * 1e9).to_i }) }
      end
      puts data[:detected_thread_count], sums(data).except(nil).sum { |_, all| all["six"] }, truth
    RUBY
    expect(count).to eq(151)
    expect(busy).to be_within(truth * 0.3).of(truth)
  end

  it "may have several threads, and are in snapshots that let go of what they have" do
    first, second, rest = answer(<<~'RUBY')
      Rperf.start(mode: :wall, frequency: 500)
      ractor = Ractor.new { Array.new(2) { Thread.new { work(0.3) } }.each(&:join) && Ractor.receive }
      of_ractor = ->(data) { sums(data).except(nil).reduce(Hash.new(0)) { |sum, (_, all)| sum.merge(all) } }
      sleep 0.2
      parts = Array.new(2) { Rperf.snapshot(clear: true).tap { sleep 0.2 } }
      ractor.send(1)
      value_of(ractor)
      [*parts, Rperf.stop].each { |data| puts of_ractor[data].slice("work", "join").to_json }
    RUBY
    expect([first, second]).to all(include("work" => be > 1e8))
    expect([first, second, rest].sum { it.fetch("work", 0) }).to be > 5e8
  end

  it "count in sections", alone: true do
    inside, elapsed = answer(<<~'RUBY')
      Rperf.start(mode: :wall, defer: true)
      # It may run as the section begins: then it is seen from its next event on.
      ractor = Ractor.new { Ractor.receive && sleep(0.01) && six(2) }
      began = now
      Rperf.profile { ractor.send(1).then { sleep 0.3 } }
      elapsed = now - began
      value_of(ractor)
      puts sums(Rperf.stop).except(nil).values.sum { |all| all["six"] }, (elapsed * 1e9).to_i
    RUBY
    expect(inside).to be_between(elapsed * 0.4, elapsed * 1.02)
  end

  it "are told from labels of the program's with the same name" do
    sets, = answer(<<~'RUBY')
      data = Rperf.start(mode: :cpu) do
        Rperf.label("%ractor": "mine") { six(0.1) }
        value_of(Ractor.new { six(0.1) })
      end
      puts JSON.generate(data[:label_sets].flat_map { |set| set.except(:"%gc").to_a }.sort)
    RUBY
    expect(sets).to include(["label.%ractor", "mine"], ["%ractor", /\A\d+\z/])
    expect(sets.map(&:first).uniq).to match_array(%w[%ractor label.%ractor])
  end

  it "collect garbage and are stopped for it, while others are sampled" do
    done, dropped, states = answer(<<~'RUBY')
      GC.auto_compact = true
      def allocate(turns) = turns.times { |turn| Array.new(50) { |index| (turn + index).to_s }.sort.size }
      data = Rperf.start(mode: :wall, frequency: 5000) do
        10.times do
          ractors = Array.new(3) { Ractor.new { allocate(2_000) && 7 } }
          allocate(500)
          GC.compact
          @done = ractors.sum { value_of(it) }
        end
      end
      puts @done, data[:dropped_samples]
      others = data[:samples].select { |row| data[:label_sets][row[3]].key?(:"%ractor") }
      puts others.map { |row| row[0].first.last }.uniq.to_json
    RUBY
    expect([done, dropped]).to eq([21, 0])
    expect(states).to include(match(/sort|to_s|allocate|new|initialize/))
    # Only 4.0 has one list of events for all Ractors, which tells of them.
    expect(states).to include(match(/\A\[GC/)) if RUBY_VERSION.start_with?("4.0.")
  end
end
