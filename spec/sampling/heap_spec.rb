# frozen_string_literal: true

require "json"

# Objects that stay, by who has made them. Bounds are five standard deviations and more, if nothing else is said.
RSpec.describe "Objects in use", vm: true do
  work = <<~'RUBY'
    Item = Struct.new(:number, :text)
    Cart = Class.new { def initialize(items) = @items = items }

    class Shop
      CARTS = {}

      # Keeps in a constant's Hash, in a thread's locals, in a closure; keeps nothing; keeps the latest.
      def site_a(n) = n.times { |i| CARTS[CARTS.size] = Array.new(70) }
      def site_b(n) = (Thread.current[:kept] ||= []).concat(Array.new(n) { |i| Item.new(i, nil) })
      def site_c(n)
        kept = Array.new(n) { Cart.new(nil) }
        $closures = [*$closures, -> { kept.size }]
      end
      def site_d(n) = n.times { Array.new(70) }
      def site_e(n, most: 1000)
        @latest ||= []
        n.times { @latest.push(Array.new(70)); @latest.shift if @latest.size > most }
      end
    end

    def in_use(profile, value = "inuse_space", by: :function, sort: :self, **filter)
      rows = profile.top(value:, by:, sort: :total, **filter)
      rows.to_h { |row| [row[:name], row[sort]] }
    end

  RUBY

  # The bytes of the slots of such an Array, of an Item, a Cart and an Object.
  let(:slots) do
    told(<<~RUBY)
      #{work}
      kinds = [-> { Array.new(70) }, -> { Item.new(1, nil) }, -> { Cart.new(nil) }, -> { Object.new }]
      sizes = kinds.map do |kind|
        profile = Rperf.start(measure: :alloc) { 1000.times { kind.call } }
        %w[alloc_space alloc_objects].map { |value| in_use(profile, value).values.max }.reduce(:fdiv).round
      end
      puts sizes.to_json
    RUBY
  end
  let(:large) { slots[0] }
  let(:item) { slots[1] }
  let(:cart) { slots[2] }
  let(:plain) { slots[3] }

  # The bytes of a site are off by so much at most, where a sample stands for so many in the mean.
  def near(bytes, deviations: 6, each: 64 * 1024) = be_within(deviations * Math.sqrt(bytes * each)).of(bytes)

  # `rperf record` in such a way that they stand for so many.
  def record(output, *command)
    rperf("record", "--measure", "heap", "--max-overhead", "100", "-o", output, ruby, *command)
  end

  def of_site(table, name) = table.select { |site, _| site.end_with?("Shop##{name}") }.values.sum

  it "are those of each site, whoever holds them, with their callers, classes and labels" do
    found = told(<<~RUBY)
      #{work}
      def endpoint(shop) = shop.site_a(40_000)
      shop = Shop.new
      profile = Rperf.start(mode: :wall, measure: :heap, max_overhead: 100) do
        20.times do
          Rperf.label(page: "carts") { shop.site_a(2_000) }
          shop.site_b(20_000)
          shop.site_c(20_000)
          shop.site_d(20_000)
          shop.site_e(5_000)
        end
        endpoint(shop)
        GC.start
      end
      puts({
        bytes: in_use(profile), callers: in_use(profile, sort: :total), made: in_use(profile, "alloc_space"),
        objects: in_use(profile, "inuse_objects"), classes: in_use(profile, by: "label:%class"),
        pages: in_use(profile, by: "label:page"), ages: in_use(profile, by: "label:%age"),
        of_items: in_use(profile, tagfocus: "%class=Item")
      }.to_json)
    RUBY
    bytes = found["bytes"]
    expect(of_site(bytes, "site_a")).to near(80_000 * large)
    expect(of_site(bytes, "site_b")).to near(400_000 * item)
    expect(of_site(bytes, "site_c")).to near(400_000 * cart)
    expect(of_site(bytes, "site_e")).to be <= (1000 * large) + (6 * Math.sqrt(1000 * large * 64 * 1024))
    # What no collection could take yet is in use.
    expect(of_site(bytes, "site_d")).to be < of_site(found["made"], "site_d") / 50
    expect(of_site(found["objects"], "site_a") * large).to near(80_000 * large)
    expect(found["callers"].fetch("Object#endpoint")).to near(40_000 * large)
    expect(found["classes"].fetch("Item")).to near(400_000 * item)
    expect(found["classes"].fetch("Cart")).to near(400_000 * cart)
    expect(found["pages"].fetch("carts")).to near(40_000 * large)
    expect(of_site(found["of_items"], "site_b")).to eq(found["classes"]["Item"])
    expect(found["ages"].keys).to include("<1 min").and all(eq("<1 min").or(eq("<1 GC")))
    expect(found["ages"]["<1 min"]).to be > found["ages"].fetch("<1 GC", 0)
    expect(bytes.values.sum).to be < found["made"].values.sum
  end

  it "are levels: each look has those that are alive by then, also after what was made was cleared" do
    looks = told(<<~RUBY)
      #{work}
      shop = Shop.new
      look = ->(profile) { [in_use(profile), in_use(profile, "alloc_space")] }
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      shop.site_a(50_000)
      looks = [Rperf.snapshot, Rperf.snapshot(clear: true)]
      shop.site_a(20_000)
      looks << Rperf.snapshot
      Shop::CARTS.clear
      GC.start
      looks << Rperf.snapshot(clear: true)
      shop.site_c(100_000)
      looks << Rperf.stop
      puts [*looks.map(&look), look[Rperf.merge(looks[0], looks[2])]].to_json
    RUBY
    sums = looks.map { |look| look.map { |table| of_site(table, "site_a") } }
    expect(sums[0]).to all(near(50_000 * large))
    expect(sums[1]).to all(near(50_000 * large))
    expect(sums[2]).to match([near(70_000 * large), near(20_000 * large)])
    expect(sums[3]).to match([be < large * 1000, near(20_000 * large)])
    expect(sums[4]).to match([be < large * 1000, 0])
    expect(of_site(looks[4][0], "site_c")).to near(100_000 * cart)
    # Of two looks at a process that are made one, the later one's stay.
    expect(sums[5]).to match([sums[2][0], sums[0][1] + sums[2][1]])
  end

  it "have their ages, by collections and by the clock" do
    ages = told(<<~RUBY)
      #{work}
      shop = Shop.new
      GC.start
      GC.disable
      profile = Rperf.start(mode: :wall, measure: :heap, max_overhead: 100) { shop.site_a(20_000) }
      young = in_use(profile, by: "label:%age")
      GC.enable
      Shop::CARTS.clear
      profile = Rperf.start(mode: :wall, measure: :heap, max_overhead: 100) do
        shop.site_a(20_000)
        2.times { GC.start }
      end
      puts [young, in_use(profile, by: "label:%age")].to_json
    RUBY
    expect(ages[0].keys).to eq(["<1 GC"])
    expect(ages[1].fetch("<1 min")).to near(20_000 * large)
  end

  it "follow objects that move, and those whose classes come and go, under compaction and GC stress" do
    before, after, classes = told(<<~RUBY)
      #{work}
      shop = Shop.new
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      shop.site_a(30_000)
      10.times { |i| eval("class Made\#{i}; end; $made = [*$made, *Array.new(5_000) { Made\#{i}.new }]") }
      before = in_use(Rperf.snapshot)
      # Not together: Ruby 4.1-dev crashes, with or without a session.
      GC.stress = true
      30.times { Array.new(70) }
      GC.stress = false
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      5.times do
        shop.site_d(20_000)
        GC.compact if GC.respond_to?(:compact)
      end
      Shop::CARTS.delete_if { |number, _| number.odd? }
      GC.start
      profile = Rperf.stop
      GC.auto_compact = false if GC.respond_to?(:auto_compact=)
      puts [before, in_use(profile), in_use(profile, by: "label:%class")].to_json
    RUBY
    expect(of_site(before, "site_a")).to near(30_000 * large)
    expect(of_site(after, "site_a")).to near(15_000 * large)
    expect(classes.select { |name, _| name.match?(/\AMade\d\z/) }.values.sum).to near(50_000 * plain)
  end

  it "are of each process of a session, and add up over these" do
    write_file("forks.rb", <<~RUBY)
      #{work}
      shop = Shop.new
      shop.site_a(30_000)
      Process.wait(fork { shop.site_a(20_000) })
      Thread.new { shop.site_a(10_000) }.join
      GC.start
    RUBY
    expect(record("f.pb.gz", "forks.rb").status).to be_success
    profile = Rperf.load(path_to("f.pb.gz"))
    by = ->(**options) { profile.top(value: "inuse_space", **options).sum { |row| row[:self] } }
    # A child that is profiled knows what it has made itself.
    expect(by.call(focus: "site_a")).to near(60_000 * large)
    expect(profile.top(value: "inuse_space", by: "label:%pid").size).to eq(2)
  end

  it "have their columns in all formats, with a note" do
    write_file("app.rb", "#{work}\nShop.new.site_a(20_000)")
    recorded = record("heap.pb.gz", "app.rb")
    expect(recorded.status).to be_success, recorded.stderr
    page = rperf("report", "--tree", "--value", "inuse_space", "heap.pb.gz").stdout
    expect(page).to include("Shop#site_a").and include("alloc_objects and alloc_space: sampled, 1 of 64 KB of slots")
    note = /^inuse_objects and inuse_space: made in the session, and alive when this was taken, in process \d+-\h+-\d+$/
    expect(page).to match(note)
    expect(rperf("report", "--top", "--value", "alloc_space", "heap.pb.gz").stdout).not_to match(note)
    expect(rperf("report", "--value", "inuse_objects", "--callers", "Shop#site_a", "heap.pb.gz").status).to be_success
    types = JSON.parse(rperf("report", "--format", "json", "--value", "inuse_space", "heap.pb.gz").stdout)
    expect(types.to_json).to include("inuse_space")
    collapsed = rperf("report", "--format", "collapsed", "--value", "inuse_space", "heap.pb.gz").stdout
    expect(collapsed).to match(/Shop#site_a.* \d{7,}$/)
    html = rperf("report", "-o", "x.html", "heap.pb.gz")
    expect(html.status).to be_success, html.stderr
  end

  it "are compared as levels with their noise" do
    write_file("make.rb", "#{work}\nShop.new.site_a(ARGV[0].to_i)")
    %w[20000 20001 60000].each { |n| record("#{n}.pb.gz", "make.rb", n) }
    gate = lambda do |file|
      rperf("diff", "--top", "--value", "inuse_space", "--fail-above", "50", "20000.pb.gz", file).status.exitstatus
    end
    expect(gate["20001.pb.gz"]).to eq(0)
    expect(gate["60000.pb.gz"]).to eq(3)
  end

  it "call nothing that a program can redefine, and no TracePoint hears of them" do
    bytes, calls, output = told(<<~RUBY)
      #{work}
      class ObjectSpace::WeakMap
        %i[[]= [] keys delete size inspect].each { |name| define_method(name) { |*| raise "called" } }
      end
      class Integer
        def hash = raise("hashed")
        def eql?(other) = raise("compared")
      end
      calls = []
      point = TracePoint.new(:c_call) { |it| calls << it.method_id.to_s if it.defined_class.to_s.include?("WeakMap") }
      shop = Shop.new
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      point.enable { 20.times { shop.site_b(10_000) } }
      shop.site_b(100_000)
      GC.start
      profile = Rperf.stop
      puts [in_use(profile), calls.uniq, Thread.current[:kept].size].to_json
    RUBY
    expect(of_site(bytes, "site_b")).to near(300_000 * item)
    expect([calls, output]).to eq([[], 300_000])
  end

  it "leave the program's output and its own WeakMaps as they are" do
    program = <<~RUBY
      #{work}
      map = ObjectSpace::WeakMap.new
      keys = Array.new(1_000) { |i| "key \#{i}" }
      keys.each { |key| map[key] = key.size }
      shop = Shop.new
      shop.site_a(20_000)
      GC.start
      begin
        raise "a"
      rescue => error
        shop.site_e(20_000)
        puts $!.equal?(error)
      end
      ids = Array.new(100) { Object.new }.map(&:object_id)
      puts ids.uniq.size, map.size, ObjectSpace.count_objects.key?(:TOTAL), GC.enable
    RUBY
    write_file("app.rb", program)
    plain = run(ruby, "app.rb")
    profiled = rperf("record", "--measure", "heap", ruby, "app.rb")
    expect([profiled.stdout, profiled.status.exitstatus]).to eq([plain.stdout, 0])
  end

  it "are few: half of the samples go where they are too many, and the others stand for them" do
    skip "takes some 20 s and 1 GB" unless ENV["RPERF_LONG"] == "1"
    found = told(<<~RUBY)
      #{work}
      keep = []
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      GC.disable
      110.times { keep << Array.new(1_000_000) { Object.new } }
      profile = Rperf.stop
      puts [in_use(profile, by: "label:%class").fetch("Object")].to_json
    RUBY
    expect(found[0]).to near(110_000_000 * plain, each: 128 * 1024)
  end

  it "are of the main Ractor's threads; those of others are counted" do
    classes, = told(<<~RUBY)
      #{work}
      $VERBOSE = nil
      Elsewhere = Class.new
      kept = nil
      profile = Rperf.start(mode: :wall, measure: :heap, max_overhead: 100) do
        ractor = Ractor.new { Array.new(200_000) { Elsewhere.new }.size }
        kept = Array.new(100_000) { Object.new }
        ractor.respond_to?(:value) ? ractor.value : ractor.take
        GC.start
      end
      path = "r.pb.gz"
      profile.save(path)
      puts [in_use(profile, by: "label:%class")].to_json
    RUBY
    expect(classes.fetch("Object")).to near(100_000 * plain)
    expect(classes).not_to have_key("Elsewhere")
    comments = PprofMessage.read(path_to("r.pb.gz")).comments
    # Ruby 3.4 tells of none.
    count = RUBY_VERSION.start_with?("3.4") ? "$" : ": 2\\d\\d,\\d{3}$"
    expect(comments.join("\n")).to match(/^objects that other Ractors made are not counted#{count}/)
  end

  it "are refused beside exact counts and in a trace" do
    expect(rperf("record", "--measure", "alloc,heap", ruby, "-e", "1").stderr)
      .to eq("rperf: --measure alloc can't be combined with --measure heap: leave one of them out\n")
    expect { Rperf.trace(measure: :heap) { nil } }
      .to raise_error(ArgumentError, "measure: [:heap] goes with mode: :cpu or :wall, not with mode: :trace")
    missing = run(ruby, "-I#{File.expand_path("../../lib", __dir__)}", "-e", <<~RUBY)
      ObjectSpace.send(:remove_const, :WeakMap)
      require "rperf"
      begin
        Rperf.start(measure: :heap)
      rescue Rperf::Error => error
        puts error.message
      end
    RUBY
    expect(missing.stdout).to start_with("this Ruby has no ObjectSpace::WeakMap")
    redefined = run(ruby, "-I#{File.expand_path("../../lib", __dir__)}", "-e", <<~RUBY)
      ObjectSpace::WeakMap.prepend(Module.new { def keys = super })
      require "rperf"
      begin
        Rperf.start(measure: :heap)
      rescue Rperf::Error => error
        puts error.message
      end
    RUBY
    expect(redefined.stdout.lines)
      .to match([start_with("this Ruby has no ObjectSpace::WeakMap as this rperf knows it")])
  end

  it "are in maps that no program finds, and without objects that it doesn't see" do
    before, during, seen = told(<<~RUBY)
      #{work}
      maps = -> { ObjectSpace.each_object(ObjectSpace::WeakMap).map(&:inspect).size }
      before = maps.call
      shop = Shop.new
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      shop.site_b(50_000)
      # Their texts are shared with Strings that have no class.
      kept = Array.new(50_000) { |i| "\#{i}" * 100 }.map { |text| text[1..] }
      during = maps.call
      seen = 0
      ObjectSpace.each_object do |object|
        next if Array === object || Hash === object
        seen += 1 if (object.inspect rescue nil)
      end
      profile = Rperf.stop
      puts [before, during, seen, kept.size].to_json
    RUBY
    expect(during).to eq(before)
    expect(seen).to be > 50_000
  end

  it "are kept alive for a moment only, and not when no time counts any more" do
    left = told(<<~RUBY)
      class Brief; end
      clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      make = -> { Array.new(400_000) { Brief.new }.size }
      # Stacks that have ended refer to nothing.
      left = lambda do
        till = clock.call + 0.3
        nil until clock.call > till
        GC.start
        ObjectSpace.each_object(Brief).count
      end
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      Thread.new(&make).join
      after_burst = left.call
      Thread.new(&make).join
      Rperf.pause
      in_pause = left.call
      Rperf.stop
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100, defer: true)
      Thread.new { Rperf.profile(&make) }.join
      after_section = left.call
      Rperf.stop
      puts [after_burst, in_pause, after_section].to_json
    RUBY
    expect(left).to all(be <= 1)
  end

  it "are added up over sessions of one process, and none are garbage that a later collection took" do
    both, ages = told(<<~RUBY)
      #{work}
      first = Rperf.start(mode: :wall, measure: :heap, max_overhead: 100) { Shop.new.site_a(20_000) }
      second = Rperf.start(mode: :wall, measure: :heap, max_overhead: 100) { Shop.new.site_a(30_000) }
      both = in_use(Rperf.merge(first, second))
      GC.start
      GC.disable
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      Shop.new.site_d(20_000)
      # Between the look and the end of the profile, which gives names, others run.
      done = false
      other = Thread.new { GC.start until done }
      looks = Array.new(5) { Rperf.snapshot }
      done = true
      other.join
      Rperf.stop
      puts [both, in_use(looks[0], by: "label:%age", focus: "site_d")].to_json
    RUBY
    expect(of_site(both, "site_a")).to near(50_000 * large)
    expect(ages.keys - ["<1 GC"]).to eq([])
  end

  it "stay right for ten minutes of threads, fibers, compaction and forks" do
    skip "takes ten minutes" unless ENV["RPERF_LONG"] == "1"
    off, kept = told(<<~RUBY, limit: 900)
      #{work}
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      shop = Shop.new
      till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 600
      rounds = 0
      until Process.clock_gettime(Process::CLOCK_MONOTONIC) > till
        threads = Array.new(4) { |i| Thread.new { shop.site_d(20_000); Shop.new.site_e(5_000); shop.site_c(2_000) if i == 0 } }
        Fiber.new { shop.site_a(1_000) }.resume
        threads.each(&:join)
        $closures.shift if $closures.size > 50
        Shop::CARTS.clear if Shop::CARTS.size > 60_000
        GC.compact if (rounds += 1) % 20 == 0 && GC.respond_to?(:compact)
        Process.wait(fork { shop.site_d(10_000); exit!(0) }) if rounds % 50 == 0
        Rperf.snapshot(clear: rounds.even?) if rounds % 10 == 0
      end
      GC.start
      kept = Shop::CARTS.size
      puts [of = in_use(Rperf.stop).select { |name, _| name.end_with?("Shop#site_a") }.values.sum, kept].to_json
    RUBY
    expect(off).to near(kept * large)
  end
end
