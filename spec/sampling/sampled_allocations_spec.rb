# frozen_string_literal: true

require "json"

# Objects that a program makes, sampled by their bytes, with callers. Bounds are five standard deviations and more.
RSpec.describe "Sampled allocations", vm: true do
  work = <<~RUBY
    $sampled = :"alloc=sampled"
    Pair = Struct.new(:left, :right)

    class Maker
      def objects(n) = n.times { Object.new }
      def large(n) = n.times { Array.new(70) }
      def texts(n) = n.times { "x" * 10_000 }
      def long(n) = n.times { "x" * 1_000_000 }
      def pairs(n) = n.times { Pair.new(1, 2) }

      def all(rounds, pause: nil)
        rounds.times do
          objects(400)
          large(40)
          texts(10)
          pairs(200)
          sleep(pause) if pause
        end
        long(5)
      end
    end

    def made(profile, value = "alloc_objects", by: :function, sort: :self, **filter)
      rows = profile.top(value:, by:, sort: :total, **filter)
      rows.to_h { |row| [row[:name], row[sort == :self ? :self : :total]] }
    end
  RUBY

  # The value of a row is off by so much at most, where a sample stands for so many bytes in the mean: more on a busy
  # machine, unless there is no limit of what samples cost.
  def near(bytes, deviations: 6) = be_within(deviations * Math.sqrt(bytes * 64.0 * 1024)).of(bytes)

  { "always at work" => "all(4000)", "at work in bursts" => "all(1000, pause: 0.001)" }.each do |name, call|
    it "have the objects and bytes of each site in a program that is #{name}" do
      exact, sampled, made, total = told(<<~RUBY)
        #{work}
        maker = Maker.new
        exact = Rperf.start(mode: :wall, measure: :alloc) { maker.#{call} }
        before = GC.stat(:total_allocated_objects)
        sampled = Rperf.start(mode: :wall, measure: $sampled) { 5.times { maker.#{call} } }
        made = GC.stat(:total_allocated_objects) - before
        tables = [exact, sampled].map { |profile| [made(profile), made(profile, "alloc_space")] }
        puts [*tables, made, made(sampled).values.sum].to_json
      RUBY
      truth = exact[1].select { |site, _| site.start_with?("block in Maker#") }
      expect(truth.keys).to include("block in Maker#objects", "block in Maker#large", "block in Maker#texts")
      truth.each do |site, bytes|
        next if bytes < 100_000

        expect(sampled[1].fetch(site, 0)).to near(5 * bytes), site
        size = bytes.fdiv(exact[0].fetch(site))
        expect(sampled[0].fetch(site, 0) * size).to near(5 * bytes), site
      end
      expect(total).to be_within(made / 8).of(made)
    end
  end

  it "have their callers, the labels of their blocks and their classes" do
    callers, labels, classes, pages = told(<<~RUBY)
      #{work}
      def endpoint(n) = Maker.new.objects(n)
      def other(n) = Maker.new.pairs(n)
      profile = Rperf.start(mode: :wall, measure: $sampled, max_overhead: 100) do
        Rperf.label(page: "a") { endpoint(300_000) }
        Rperf.label(page: "b") { other(100_000) }
        Fiber.new { Rperf.label(page: "c") { other(100_000) } }.resume
      end
      totals = made(profile, sort: :total)
      puts [totals, made(profile, by: "label:page"), made(profile, by: "label:%class"),
            made(profile, tagfocus: "%class=Pair", by: "label:page")].to_json
    RUBY
    objects = ->(count) { be_within(6 * Math.sqrt(count * 64.0 * 1024 / 40)).of(count) }
    expect(callers.fetch("Object#endpoint")).to objects[300_000]
    expect(callers.fetch("Object#other")).to objects[200_000]
    expect(labels.fetch("a")).to objects[300_000]
    expect(labels.fetch("b") + labels.fetch("c")).to objects[200_000]
    expect(classes.fetch("Object")).to objects[300_000]
    expect(classes.fetch("Pair")).to objects[200_000]
    expect(pages.keys).to include("b").and include("c")
    expect(pages["a"].to_i).to eq(0)
  end

  it "say that they are sampled, and have callers in the tree" do
    write_file("app.rb", "#{work}\nMaker.new.objects(200_000)")
    expect(rperf("record", "--measure", "alloc=sampled", ruby, "app.rb").status).to be_success
    page = rperf("report", "--tree", "--value", "alloc_objects").stdout
    note = /^alloc_objects and alloc_space: sampled, 1 of 64 KB of slots in Ruby's heap, without the memory that/
    expect(page).to match(note).and include("Maker#objects")
    expect(page).not_to include("have no callers")
    expect(rperf("report", "--top").stdout).not_to match(note)
    expect(rperf("report", "--top", "--value", "alloc_space").stdout).to match(note)
  end

  it "are estimates of short programs, too, and of those that leave no other events" do
    short, long = told(<<~RUBY)
      #{work}
      maker = Maker.new
      GC.start
      GC.disable
      maker.objects(1_000_000)
      GC.enable
      GC.start
      GC.disable
      sessions = [50_000, 2_000_000].map { |n| Rperf.start(measure: $sampled, max_overhead: 100) { maker.objects(n) } }
      puts sessions.map { |it| made(it).fetch("block in Maker#objects", 0) }.to_json
    RUBY
    expect(short * 40).to near(50_000 * 40)
    expect(long * 40).to near(2_000_000 * 40)
  end

  it "are those of sections, whatever is made between them" do
    found = told(<<~RUBY)
      #{work}
      maker = Maker.new
      Rperf.start(measure: $sampled, max_overhead: 100, defer: true)
      30.times do
        maker.objects(200_000)
        Rperf.profile { maker.objects(40_000) }
      end
      puts [made(Rperf.stop).fetch("block in Maker#objects", 0)].to_json
    RUBY
    expect(found[0] * 40).to near(1_200_000 * 40)
  end

  it "have their classes beside a program's own label of that name" do
    classes, own = told(<<~RUBY)
      #{work}
      profile = Rperf.start(measure: $sampled, max_overhead: 100) do
        Rperf.label("%class": "mine") { Maker.new.objects(500_000) }
      end
      puts [made(profile, by: "label:%class"), made(profile, by: "label:label.%class")].to_json
    RUBY
    expect(classes.fetch("Object") * 40).to near(500_000 * 40)
    expect(own.fetch("mine") * 40).to near(500_000 * 40)
  end

  it "are sampled in sections only, and once in snapshots" do
    counts = told(<<~RUBY)
      #{work}
      maker = Maker.new
      maker.large(200_000)
      Rperf.start(measure: $sampled, max_overhead: 100, defer: true)
      maker.large(500_000)
      Rperf.profile { maker.large(500_000) }
      first = Rperf.snapshot
      Rperf.profile { maker.large(500_000) }
      second = Rperf.snapshot(clear: true)
      Rperf.profile { maker.large(500_000) }
      maker.large(500_000)
      third = Rperf.stop
      puts [first, second, third].map { |it| made(it).fetch("block in Maker#large", 0) }.to_json
    RUBY
    counts.zip([500_000, 1_000_000, 500_000]).each do |found, made|
      expect(found * 640).to near(made * 640, deviations: 10)
    end
  end

  it "have classes and frames that come and go, under GC stress and compaction" do
    classes, enabled = told(<<~RUBY)
      #{work}
      maker = Maker.new
      maker.objects(200_000)
      profile = Rperf.start(measure: $sampled, max_overhead: 100) do
        300.times do |i|
          eval("class Made\#{i}; def self.make = 500.times { new }; end; Made\#{i}.make")
          Object.send(:remove_const, "Made\#{i}")
          20.times { Class.new.new }
          GC.compact if i % 50 == 0 && GC.respond_to?(:compact)
        end
        GC.stress = true
        maker.objects(50)
        GC.stress = false
        GC.auto_compact = true if GC.respond_to?(:auto_compact=)
        20.times { maker.objects(50_000) }
        3.times { GC.start }
      end
      GC.auto_compact = false if GC.respond_to?(:auto_compact=)
      puts [made(profile, by: "label:%class"), !GC.enable].to_json
    RUBY
    expect(classes.keys.grep(/\AMade\d/).size).to be > 20
    expect(classes.fetch("Object") * 40).to near(1_000_000 * 40)
    expect(enabled).to be(true)
  end

  it "leave collections off where the program has switched them off, and other hooks on objects in place" do
    disabled, lines, count = told(<<~RUBY)
      #{work}
      require "objspace"
      lines = []
      disabled = []
      profile = Rperf.start(mode: :wall, measure: $sampled, max_overhead: 100) do
        GC.disable
        20.times { Maker.new.objects(20_000); sleep 0.001 }
        disabled << GC.enable
        20.times do
          Maker.new.objects(50_000)
          ObjectSpace.trace_object_allocations do
            Maker.new.objects(20_000)
            lines << ObjectSpace.allocation_sourceline(Object.new)
          end
        end
        disabled << GC.enable
      end
      puts [disabled, lines.uniq.size, lines.compact.size].to_json
    RUBY
    expect(disabled).to eq([true, false])
    expect([lines, count]).to eq([1, 20])
  end

  it "go on in forked children that are profiled" do
    write_file("forks.rb", "#{work}\nmaker = Maker.new; maker.large(100_000)\n" \
                           "Process.wait(fork { maker.large(200_000) }); maker.large(100_000)")
    options = %w[--measure alloc=sampled --max-overhead 100 -o f.pb.gz]
    expect(rperf("record", *options, ruby, "forks.rb").status).to be_success
    made = Rperf.load(path_to("f.pb.gz")).top(value: "alloc_objects").to_h { |row| [row[:name], row[:self]] }
    expect(made.fetch("block in Maker#large") * 640).to near(400_000 * 640)
  end

  it "are none in a copy of the program, which only tells what there is" do
    program, copy = told(<<~RUBY)
      #{work}
      Rperf.start(mode: :wall, measure: :heap)
      Maker.new.objects(300_000)
      program = Rperf.snapshot
      # What the copy does first; here the program goes on.
      Rperf.const_get(:Native).end_in_copy
      Maker.new.objects(300_000)
      2.times { GC.start }
      puts [program, Rperf.stop].map { |it| made(it).fetch("block in Maker#objects") }.to_json
    RUBY
    expect(program).to be > 100_000
    expect(copy).to eq(program)
  end

  it "are of the main Ractor's threads and fibers" do
    classes, threads = told(<<~RUBY)
      #{work}
      $VERBOSE = nil
      Elsewhere = Class.new
      profile = Rperf.start(mode: :wall, measure: $sampled, max_overhead: 100) do
        ractors = Array.new(2) { Ractor.new { 300_000.times { Elsewhere.new }; 1 } }
        threads = Array.new(3) { Thread.new { Maker.new.objects(300_000) } }
        20.times { Fiber.new { Maker.new.objects(10_000) }.resume }
        [*threads.map(&:join), *ractors.map { |it| it.respond_to?(:value) ? it.value : it.take }]
        3.times { GC.start }
        Maker.new.objects(100_000)
      end
      puts [made(profile, by: "label:%class"), made(profile, by: :thread)].to_json
    RUBY
    expect(classes.fetch("Object")).to be_between(100_000, 1_500_000)
    expect(classes).not_to have_key("Elsewhere")
    expect(threads.size).to be >= 2
  end

  it "leave compiled code as it was", if: Compilers::FLAGS["YJIT"] do
    compiled, invalidated, count = told(<<~RUBY, Compilers::FLAGS["YJIT"])
      #{work}
      maker = Maker.new
      5.times { maker.all(200) }
      stats = -> { RubyVM::YJIT.runtime_stats.values_at(:compiled_iseq_count, :invalidation_count) }
      before = stats.call
      count = 0
      profile = Rperf.start(mode: :wall, measure: $sampled, max_overhead: 100) { 20.times { maker.all(200) } }
      after = stats.call
      count = made(profile).fetch("block in Maker#objects")
      puts [before[0] == after[0] || after[0] - before[0], after[1] - before[1], count].to_json
    RUBY
    # Sampling itself has methods of Ruby, which are compiled as others are.
    expect(compiled == true || compiled <= 10).to be(true)
    expect(invalidated).to be <= 2
    expect(count * 40).to near(1_600_000 * 40)
  end

  it "differ between two runs beyond their noise only" do
    write_file("make.rb", "#{work}\nMaker.new.objects(ARGV[0].to_i)")
    %w[1000000 1000001 3000000].each do |n|
      rperf("record", "--measure", "alloc=sampled", "--max-overhead", "100", "-o", "#{n}.pb.gz", ruby, "make.rb", n)
    end
    gate = lambda do |file|
      rperf("diff", "--top", "--value", "alloc_space", "--fail-above", "50", "1000000.pb.gz", file).status.exitstatus
    end
    expect(gate["1000001.pb.gz"]).to eq(0)
    expect(gate["3000000.pb.gz"]).to eq(3)
  end

  it "are refused beside exact counts, one by one, and in a trace" do
    expect(rperf("record", "--measure", "alloc,alloc=sampled", ruby, "-e", "1").stderr)
      .to eq("rperf: --measure alloc can't be combined with --measure alloc=sampled: leave one of them out\n")
    expect { Rperf.start(measure: [:"alloc=sampled"], aggregate: false) }
      .to raise_error(ArgumentError, 'measure: [:"alloc=sampled"] goes with aggregate: true, not with aggregate: false')
    expect { Rperf.trace(measure: :"alloc=sampled") { nil } }
      .to raise_error(ArgumentError, 'measure: [:"alloc=sampled"] goes with mode: :cpu or :wall, not with mode: :trace')
  end
end
