# frozen_string_literal: true

require "json"
require "zlib"

# Objects that a program makes, counted one by one: beside samples, and in a trace.
RSpec.describe "Allocations", vm: true do
  include Traces

  work = <<~RUBY
    class Point
      def initialize(x) = @x = x
    end

    class Maker
      def points(n)
        i = 0
        while i < n
          Point.new(i)
          i += 1
        end
      end

      def texts(n) = Array.new(n) { |i| "text" + "s" }
      def sizes(n) = Array.new(n) { Object.new }.size
    end

    def made(profile, value = "alloc_objects", by: :function)
      profile.top(value:, by:, sort: :total).to_h { |row| [row[:name], row[:self]] }
    end
  RUBY

  modes = { "beside samples" => "Rperf.start(mode: :wall, measure: :alloc)",
            "in a trace" => "Rperf.trace(measure: [:alloc], warn: false)" }

  modes.each do |name, start|
    describe name do
      it "are counted exactly, by method, line and class" do
        methods, classes, bytes, strings = told(<<~RUBY)
          #{work}
          maker = Maker.new
          profile = #{start} { maker.points(1000); maker.texts(50); maker.sizes(70) }
          strings = profile.top(value: "alloc_objects", tagfocus: "%class=String").first.slice(:name, :self)
          puts [made(profile), made(profile, by: "label:%class"), made(profile, "alloc_space"), strings].to_json
        RUBY
        expect(classes).to include("Point" => 1000, "Object" => 70)
        expect(classes.fetch("String")).to be_between(100, 160)
        expect(methods.fetch("Maker#points")).to eq(1000)
        expect(bytes.fetch("Maker#points")).to be_between(1000 * 16, 1000 * 160)
        expect(strings).to match("name" => "block in Maker#texts", "self" => be_between(100, 160))
      end
    end
  end

  it "say that their bytes are those of slots" do
    write_file("app.rb", "Array.new(100) { Object.new }")
    %w[record trace].each do |command|
      rperf(command, "--measure", "alloc", ruby, "app.rb")
      note = /^alloc_space: bytes of slots in Ruby's heap, without the memory that objects have elsewhere$/
      expect(rperf("report", "--top", "--value", "alloc_space").stdout).to match(note)
      expect(rperf("report", "--top").stdout).not_to match(note)
      expect(rperf("report", "--methods").stdout).to match(/ objects +own +slots$/)
    end
  end

  it "are the same in each run" do
    program = "#{work}; Maker.new.points(10); maker = Maker.new
               puts made(Rperf.start(measure: :alloc) { maker.points(3000) }, by: 'label:%class').to_json"
    runs = Array.new(3) { told(program)["Point"] }
    expect(runs).to eq([3000] * 3)
  end

  it "belong to threads, and are of the main Ractor" do
    threads, classes = told(<<~RUBY)
      #{work}
      $VERBOSE = nil
      profile = Rperf.start(mode: :wall, measure: :alloc) do
        Array.new(3) { |i| Thread.new { Maker.new.points(100 * (i + 1)) } }.each(&:join)
        ractor = Ractor.new { Maker.new.points(500) }
        ractor.respond_to?(:value) ? ractor.value : ractor.take
      end
      puts [made(profile, by: :thread), made(profile, by: "label:%class")].to_json
    RUBY
    expect(classes).to include("Point" => 600)
    expect(threads.values.count { |objects| objects >= 100 }).to be >= 3
  end

  modes.each do |name, start|
    it "are all there #{name}, or a comment says otherwise, when a Ractor's object is freed" do
      points, = told(<<~RUBY)
        #{work}
        $VERBOSE = nil
        maker = Maker.new
        profile = #{start} do
          maker.points(1000)
          3.times do
            ractor = Ractor.new { 1 }
            ractor.respond_to?(:value) ? ractor.value : ractor.take
          end
          3.times { GC.start }
          maker.points(1000)
        end
        profile.save("r.pb.gz")
        puts [made(profile)["Maker#points"]].to_json
      RUBY
      comments = Zlib.gunzip(File.binread(path_to("r.pb.gz")))
      expect(points).to be_between(1000, 2000)
      expect(comments).to include("may be missing: Ruby 3.4") if points < 2000
    end
  end

  it "are counted in sections only, and once in snapshots" do
    counts = told(<<~RUBY)
      #{work}
      maker = Maker.new
      Rperf.start(measure: :alloc, defer: true)
      maker.points(10)
      Rperf.profile { maker.points(20) }
      first = Rperf.snapshot
      Rperf.profile { maker.points(30) }
      second = Rperf.snapshot(clear: true)
      Rperf.profile { maker.points(40) }
      third = Rperf.stop
      Rperf.start { maker.points(5) }
      puts [first, second, third].map { |it| made(it)["Maker#points"] }.to_json
    RUBY
    expect(counts).to eq([20, 50, 40])
  end

  it "have classes and frames that come and go, under GC stress and compaction" do
    counts = told(<<~RUBY)
      #{work}
      maker = Maker.new
      profile = Rperf.start(measure: :alloc) do
        300.times do |i|
          eval("class Made\#{i}; def self.make = new; end; Made\#{i}.make; Object.send(:remove_const, :Made\#{i})")
        end
        300.times { Class.new.new }
        GC.stress = true
        maker.points(5)
        GC.stress = false
        GC.compact if GC.respond_to?(:compact)
        maker.points(5)
      end
      puts [made(profile, by: "label:%class"), made(profile)["Maker#points"]].to_json
    RUBY
    expect(counts[0].values_at("Made0", "Made299", "Point")).to eq([1, 1, 10])
    expect(counts[0].fetch("(anonymous class)")).to be >= 300
    expect(counts[1]).to eq(10)
  end

  it "go on in forked children that are profiled, and stop in others" do
    write_file("forks.rb", "#{work}\nmaker = Maker.new; maker.points(100)\nProcess.wait(fork { maker.points(200) })")
    expect(rperf("record", "--measure", "alloc", "-o", "f.pb.gz", ruby, "forks.rb").status).to be_success
    # Only objects have a class.
    expect(rperf("report", "--by", "label:%class", "f.pb.gz").stderr)
      .to eq("rperf: no value of cpu has a label %class: --value alloc_objects or alloc_space does\n")
    expect(rperf("report", "--by", "label:%class", "--value", "alloc_space", "f.pb.gz").stderr).to eq("")
    made = Rperf.load(path_to("f.pb.gz")).top(value: "alloc_objects").to_h { |row| [row[:name], row[:self]] }
    expect(made["Maker#points"]).to eq(300)
    child = told(<<~RUBY)
      #{work}
      reader, writer = IO.pipe
      profile = Rperf.start(measure: :alloc) do
        pid = fork do
          Maker.new.points(50)
          writer.write(made(Rperf.start(measure: :alloc) { Maker.new.points(7) })["Maker#points"])
        end
        Process.wait(pid)
        Maker.new.points(9)
      end
      writer.close
      puts [made(profile)["Maker#points"], reader.read].to_json
    RUBY
    expect(child).to eq([9, "7"])
  end

  it "leave the program as it was" do
    same = told(<<~RUBY)
      require "objspace"
      line = nil
      profile = Rperf.start(measure: :alloc) do
        100.times { raise("x") rescue { a: [1, 2].map(&:to_s) } }
        ObjectSpace.trace_object_allocations { line = ObjectSpace.allocation_sourceline(Object.new) }
      end
      classes = profile.top(value: "alloc_objects", by: "label:%class").to_h { |row| [row[:name], row[:self]] }
      puts [line, classes["RuntimeError"]].to_json
    RUBY
    expect(same).to eq([5, 100])
  end

  it "are counted in compiled code, too", if: Compilers::FLAGS["YJIT"] do
    count = told(<<~RUBY, Compilers::FLAGS["YJIT"])
      #{work}
      maker = Maker.new
      200.times { maker.points(10) }
      profile = Rperf.start(mode: :wall, measure: :alloc) { 200.times { maker.points(10) } }
      puts [made(profile)["Maker#points"]].to_json
    RUBY
    expect(count).to eq([2000])
  end

  it "are in reports of methods, with calls in a trace" do
    write_file("make.rb", "#{work}\nMaker.new.points(1000)")
    rperf("trace", "--measure", "alloc,cpu", "-o", "t.pb.gz", ruby, "make.rb")
    table = rperf("report", "--methods", "t.pb.gz").stdout
    expect(table).to match(%r{^ *calls +blocks +self +total +children +self/call +total/call +cpu .*objects +own})
    expect(table).to match(/^ +1 +- .* 1,000 +1,000 +\S+ \S+ +Maker#points/)
    json = JSON.parse(rperf("report", "--format", "json", "t.pb.gz").stdout)
    row = json.fetch("methods").find { |it| it["name"] == "Point#initialize" }
    expect(row).to include("calls" => 1000, "block_calls" => nil, "self_objects" => 0, "recursive" => false)
    tree = rperf("report", "--tree", "--value", "alloc_objects", "t.pb.gz").stdout
    expect(tree).to include("Maker#points")
    line = "Objects beside samples have no callers, so total is self: 'rperf trace --measure alloc' has them.\n"
    expect(tree).not_to include(line)
    rperf("record", "--measure", "alloc", "-o", "r.pb.gz", ruby, "make.rb")
    expect(rperf("report", "--tree", "--value", "alloc_objects", "r.pb.gz").stdout).to include(line)
    expect(rperf("report", "--tree", "r.pb.gz").stdout).not_to include(line)
  end

  it "fail a gate when there are more, however few samples there are" do
    write_file("make.rb", "#{work}\nMaker.new.points(ARGV[0].to_i)")
    [10_000, 12_000].each { |n| rperf("record", "--measure", "alloc", "-o", "#{n}.pb.gz", ruby, "make.rb", n.to_s) }
    files = %w[10000.pb.gz 12000.pb.gz]
    gate = ->(between) { rperf("diff", "--top", "--value", "alloc_objects", "--fail-above", "5", *between) }
    outcome = gate[files]
    expect(outcome.status.exitstatus).to eq(3)
    expect(outcome.messages.first).to match(/: more than 5% more.* Maker#points \(\+20.0%\)/)
    expect(gate[files.reverse].status.exitstatus).to eq(0)
  end

  it "are refused where they can't be counted" do
    expect(rperf("record", "--measure", "time", ruby, "-e", "1").stderr)
      .to eq("rperf: --measure must be alloc, alloc=sampled, blame, cpu, gc_cost, heap, latency, ops, requests " \
             "(with commas between several), not 'time'\n")
    expect { Rperf.start(measure: [:alloc], aggregate: false) }
      .to raise_error(ArgumentError, "measure: [:alloc] goes with aggregate: true, not with aggregate: false")
    expect { Rperf.start(measure: ["alloc"]) }
      .to raise_error(ArgumentError,
                      /\Ameasure: must be :alloc, :"alloc=sampled", :blame, :cpu, :gc_cost, :heap, :latency, :ops, :/)
    expect { Rperf.start(mode: :trace, calls: :count, measure: :cpu) }
      .to raise_error(ArgumentError, "measure: [:cpu] can't be combined with calls: :count: leave one of them out")
  end
end
