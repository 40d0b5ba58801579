# frozen_string_literal: true

require "json"
require "pathname"
require "timeout"
require "zlib"

# Profiles give the same answers in Ruby as the command gives for the same file.
RSpec.describe Rperf::Profile do
  main = ["/app/main.rb", "<main>"]
  work = ["/app/work.rb", "Work#run"]
  sort = ["<C method>", "Array#sort"]
  wait = ["<GVL>", "[GVL blocked]"]

  # A profile of wall time in which these stacks, deepest frame first, have so many samples of a millisecond. The first
  # stack has labels, the last is of another thread.
  def made(stacks)
    rows = stacks.each_with_index.map do |(frames, count), place|
      thread = stacks.size == place + 1 ? 2 : 1
      [frames, count * 1_000_000, thread, place.zero? ? 1 : 0, count, count * 500_000]
    end
    described_class[mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows,
                    label_sets: [{}, { endpoint: "GET /a|b", "%pid": "4711" }]]
  end

  def report(*) = JSON.parse(rperf("report", "--format", "json", *).stdout, symbolize_names: true)

  let(:stacks) { [[[sort, work, main], 400], [[work, work, main], 100], [[wait, main], 500]] }
  let(:profile) { made(stacks) }
  let(:path) { path_to("p.pb.gz").tap { |path| profile.save(path) } }
  let(:loaded) { Rperf.load(path) }

  describe "a profile that Rperf.stop returns", vm: true do
    it "is a Hash and answers questions, with its lines" do
      profile = Rperf.start { spin 0.05 }
      expect(profile).to be_a(Hash).and be_a(described_class)
      expect(profile.totals).to include(total: profile[:samples].sum { |row| row[1] }, frequency: 1000)
      called = profile.callers("Profiles#spin").first[:callees]
      expect(called.flat_map { |callee| callee[:lines] }).to all(include(line: be > 0))
    end

    it "has no lines where those of evaluated code are below zero" do
      code = "->(n) { Array.new(n) { |i| i.to_s } }"
      block = RubyVM::InstructionSequence.compile(code, "evaluated.rb", "evaluated.rb", -5).eval
      profile = Rperf.start(frequency: 5000, measure: :alloc) { block.call(200_000) }
      profile.save(path_to("evaluated.pb.gz"))
      %w[cpu alloc_objects].each do |value|
        report = rperf("report", "--text", "--lines", "--value", value, "evaluated.pb.gz").stdout
        expect(report).to include("(evaluated.rb)").and include("(line not known)")
        expect(report).not_to match(/evaluated\.rb:\d/)
      end
    end

    it "answers as its file does" do
      profile = Rperf.start(mode: :wall) { [spin(0.03), sleep(0.03)] }
      profile.save(path = path_to("p.pb.gz"))
      loaded = Rperf.load(path)
      expect(loaded).to eq(profile.merge(loaded.slice(:unique_frames, :unique_stacks, :samples, :aggregated_samples)))
      expect(loaded[:samples]).to match_array(profile[:samples])
      %i[totals top tree].each { |question| expect(loaded.public_send(question)).to eq(profile.public_send(question)) }
      expect(loaded.callers(/./)).to eq(profile.callers(/./))
      expect(profile.diff(loaded)).to include(rows: [], total: include(delta: 0, change: "noise"))
    end

    it "shows that a method takes less than a share of the time, as a spec of an app would", alone: true do
      profile = Rperf.start(frequency: 5000) { [spin(0.02), [3, 1, 2].sort] }
      totals = profile.totals(focus: /\AProfiles#spin\z/)
      expect(totals[:left]).to be > 0.5 * totals[:total]
      totals = profile.totals(focus: /\AArray#sort\z/)
      expect(totals[:left]).to be < 0.2 * totals[:total]
    end
  end

  describe "answers" do
    it "are those of rperf report --format json" do
      whole = report("--callers", "Work#run", "-n", "0", path)
      expect(loaded.totals).to eq(whole.slice(*loaded.totals.keys))
      expect(loaded.top).to eq(whole[:top])
      expect(loaded.tree).to eq(whole[:tree])
      expect(loaded.callers("Work#run")).to eq(whole[:callers])
      expect([whole[:version], *loaded.totals.keys, :top, :tree, :callers]).to eq([1, *whole.keys.drop(1)])
      boot = report("--boot", "-n", "2", "--ignore", "sleep", path)[:boot]
      expect(loaded.boot(limit: 2, ignore: /sleep/)).to eq(boot)
      expect(loaded.top(sort: :total, limit: 2)).to eq(report("--sort", "total", "-n", "2", path)[:top])
    end

    {
      { focus: "Work" } => %w[--focus Work], { focus: /work#RUN/i } => %w[--focus (?i)work#RUN],
      { ignore: "sort" } => %w[--ignore sort], { hide: /^Work/ } => %w[--hide ^Work],
      { show: "Work|main" } => %w[--show Work|main], { show_from: "Work" } => %w[--show-from Work],
      { tagfocus: "endpoint=GET" } => %w[--tagfocus endpoint=GET], { tagignore: "%GVL" } => %w[--tagignore %GVL],
      { tagfocus: ["endpoint=GET", "%GVL"] } => %w[--tagfocus endpoint=GET --tagfocus %GVL],
      { tagignore: ["endpoint=GET", :"%GVL"] } => %w[--tagignore endpoint=GET --tagignore %GVL],
      { tagroot: :endpoint } => %w[--tagroot endpoint],
      { tagroot: %i[thread_seq endpoint], tagleaf: "%GVL" } => %w[--tagroot thread_seq,endpoint --tagleaf %GVL],
      { thread: 2 } => %w[--thread 2], { pid: 4711 } => %w[--pid 4711], { value: :cpu } => %w[--value cpu],
      { value: 0, focus: "Work" } => %w[--value 0 --focus Work]
    }.each do |filters, options|
      it "take #{filters} as the command takes #{options.join(" ")}" do
        whole = report(*options, path)
        expect(loaded.totals(**filters)).to eq(whole.slice(*loaded.totals.keys))
        expect(whole).not_to eq(report(path))
        expect([loaded.top(**filters), loaded.tree(**filters)]).to eq(whole.values_at(:top, :tree))
        left = loaded.filter(**filters)
        expect(left.top).to eq(whole[:top])
        expect(left.totals).to include(total: whole[:left], left: whole[:left], type: whole[:type])
      end
    end

    it "are by other things than methods if asked for" do
      expect(loaded.top(by: :file).map { |row| row[:name] }).to eq(["<GVL>", "<C method>", "work.rb"])
      expect(loaded.top(by: "label:endpoint").to_h { |row| row.values_at(:name, :self) })
        .to eq("GET /a|b" => 400_000_000, "(no endpoint)" => 600_000_000)
      expect(loaded.tree(bottom_up: true).first).to include(name: "[GVL blocked]", total: 500_000_000)
      expect(loaded.tree(least: 45).map { |row| row[:name] }).to eq(["<main>", "Work#run", "[GVL blocked]"])
      expect(loaded.callers("Nobody")).to eq([])
    end

    it "are of what a Hash says that was changed, copied or marshalled" do
      expect(loaded.dup.top).to eq(loaded.top)
      expect(Marshal.load(Marshal.dump(loaded)).top).to eq(loaded.top)
      changed = loaded.merge(samples: loaded[:samples].first(1))
      expect(changed.totals[:total]).to eq(changed[:samples].first[1])
      loaded[:samples] = []
      expect(loaded.totals[:total]).to eq(0)
      expect(loaded.freeze.top).to eq([])
    end

    it "are found without the GVL, and interrupts come after them", vm: true do
      big = made(Array.new(300) { |n| [Array.new(100) { |depth| ["a.rb", "m#{n}_#{depth}"] }, 1] })
      asking = Rperf.start(mode: :wall) { 20.times { big.totals(focus: "m1") } }.totals(focus: "NativeProfile#totals")
      expect(asking[:states][:"GVL blocked"]).to be > 0.5 * asking[:left]
      expect { Timeout.timeout(0.05) { loop { big.top } } }.to raise_error(Timeout::Error)
    end
  end

  describe "#filter" do
    it "without filters is that of Hash" do
      expect(loaded.filter { |key, _| key == :mode }).to eq(mode: :wall)
      expect(loaded.filter).to be_a(Enumerator)
      expect { loaded.filter(focus: "a") { true } }.to raise_error(ArgumentError, /not both/)
    end

    it "gives a profile that every format takes" do
      left = loaded.filter(ignore: "sort", value: :cpu)
      left.save(path_to("left.pb.gz"))
      expect(Rperf.load(path_to("left.pb.gz")).top).to eq(left.top)
      expect(left).to include(mode: :cpu, frequency: 1000)
      expect(left[:samples].sum { |row| row[1] }).to eq(left.totals[:total])
    end
  end

  describe "#save" do
    it "writes what rperf report makes of the file, in each format" do
      { "p.txt" => "text", "p.collapsed" => "collapsed", "p.md" => "markdown",
        "p.json" => "json" }.each do |name, format|
        loaded.save(path_to(name))
        expect(File.binread(path_to(name))).to eq(rperf("report", "--format", format, path).stdout)
        loaded.save(Pathname(path_to("other")), format: format.to_sym)
        expect(File.binread(path_to("other"))).to eq(File.binread(path_to(name)))
      end
      loaded.save(path_to("p.html"))
      expect(File.read(path_to("p.html"))).to start_with("<!DOCTYPE html>").or start_with("<!doctype html>")
      loaded.save(path_to("again"))
      expect(Rperf.load(path_to("again"))).to eq(loaded)
    end

    it "writes paths in the form that it is asked for" do
      forms = { {} => "work.rb", { full_path: true } => "/app/work.rb", { trim_path: "/app" } => "work.rb",
                { trim_path: ["/nowhere", Pathname("/")] } => "app/work.rb" }
      forms.each do |options, shown|
        [-> { profile.save(_1, **options) }, -> { Rperf.save(_1, profile, **options) }].each do |save|
          save.call(path_to("p.txt"))
          expect(File.read(path_to("p.txt"))).to match(/Work#run \(#{Regexp.escape(shown)}\)$/)
        end
      end
      expect { profile.save("p.txt", full_path: 1) }.to raise_error(ArgumentError, /\Afull_path: must be true or false/)
      expect { profile.save("p.txt", trim_path: [1]) }.to raise_error(ArgumentError, /\Atrim_path: must be a path/)
    end

    it "lets other threads run to its end, whatever waits for it", vm: true do
      program = write_file("program.rb", <<~'RUBY')
        require "rperf"
        trap(:USR1) { $seen = true }
        frames = Array.new(100) { |n| Array.new(100) { |depth| ["a.rb", "m#{n}_#{depth}"] } }
        rows = frames.map { |stack| [stack, 1_000_000, 1, 0, 1, 0] }
        profile = Rperf::Profile[mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows, label_sets: [{}]]
        profile.top
        File.mkfifo("pipe")
        reader = Thread.new do
          # Then the thread that saves is without the GVL: it encodes.
          Thread.pass until Thread.main.backtrace.first.match?(/NativeProfile#write/)
          Process.kill(:USR1, $$)
          File.binread("pipe").bytesize
        end
        profile.save("pipe", format: :html)
        puts reader.value, $seen
      RUBY
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", program)
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      # More than a pipe takes before its reader goes on.
      expect(outcome.stdout).to match(/\A\d{6,}\ntrue\n\z/)
    end

    it "refuses what is no format" do
      expect { loaded.save(path_to("p"), format: :svg) }.to raise_error(ArgumentError, /\Aformat: must be .*:html/)
    end
  end

  describe "Rperf.load" do
    it "reads what other tools write, with all their values" do
      heap = Rperf.load(write_file("heap", PprofFile.go_heap.bytes))
      expect(heap).to include(mode: :inuse_space, frequency: nil)
      expect(heap.totals).to include(total: 7_252_048, samples: nil, type: { name: "inuse_space", unit: "bytes" })
      expect(heap.top(value: "alloc_objects").first).to include(name: "bytes.growSlice", path: "main.go", self: 1_300)
      stackprof = Rperf.load(write_file("stackprof.gz", Zlib.gzip(PprofFile.stackprof.bytes)))
      expect(stackprof.totals).to include(total: 42_124, samples: 42,
                                          types: include(name: "wall", unit: "microseconds"))
      expect(stackprof.top.first).to include(name: "Object#work", self: 40_123, self_samples: 40)
      [heap, stackprof].zip(%w[heap stackprof.gz]).each do |profile, name|
        expect(profile.totals).to eq(report(name).slice(*profile.totals.keys))
        expect(profile[:samples].sum { |row| row[1] }).to eq(profile.totals[:total])
      end
    end

    it "refuses what can't be read in one line, as an Rperf::Error" do
      whole = File.binread(path)
      Dir.mkdir(path_to("directory"))
      File.mkfifo(path_to("pipe"))
      {
        "none.pb.gz" => /\Acan't read .*none\.pb\.gz: there is no such file\z/,
        "directory" => /\Acan't read .*directory: it is a directory\z/,
        "pipe" => /\Acan't read .*pipe: it is no regular file\z/,
        write_file("nonsense", "nonsense") => /nonsense: not a pprof profile, but text; rperf reads pprof files/,
        write_file("empty", "") => /empty: the file is empty; /,
        write_file("half", whole[0, whole.size / 2]) => /half: the profile can't be read: /
      }.each do |file, message|
        expect { Rperf.load(path_to(File.basename(file))) }.to raise_error(Rperf::Error, message) do |error|
          expect(error.message).not_to include("\n")
        end
      end
      [nil, 5, "", "a\0b"].each { |it| expect { Rperf.load(it) }.to raise_error(ArgumentError, /\Apath: must be /) }
    end

    it "survives any damage" do
      whole = Zlib.gunzip(File.binread(path))
      random = Random.new(1)
      200.times do
        damaged = whole.dup
        3.times { damaged.setbyte(random.rand(damaged.size), random.rand(256)) }
        begin
          Rperf.load(write_file("damaged", damaged)).tree
        rescue Rperf::Error => e
          expect(e.message).to include("damaged: ")
        end
      end
    end
  end

  describe "Rperf.merge" do
    let(:other) { made([[[sort, main], 30], [[wait, work, main], 70]]) }

    it "adds up profiles, Hashes and files" do
      sum = Rperf.merge(profile, path, Pathname(path), profile.to_h)
      expect(sum.totals).to include(total: 4 * loaded.totals[:total], samples: 4000)
      expect(sum[:detected_thread_count]).to eq(4 * profile[:detected_thread_count].to_i)
      rperf("report", path, path, "-o", "both.pb.gz")
      expect(Rperf.merge(path, path).top).to eq(Rperf.load(path_to("both.pb.gz")).top)
      expect(Rperf.merge(profile).callers(/./)).to eq(loaded.callers(/./))
    end

    it "gives the same in any order" do
      one, two = [[profile, other], [other, profile]].map { |profiles| Rperf.merge(*profiles) }
      expect(one.totals).to eq(two.totals)
      expect([one.top, one.tree(least: 0), one.callers(/./)]).to eq([two.top, two.tree(least: 0), two.callers(/./)])
      expect(one.diff(two)[:rows]).to be_empty
    end

    it "refuses what can't be added" do
      heap = write_file("heap", PprofFile.go_heap.bytes)
      expect { Rperf.merge(path, heap) }.to raise_error(Rperf::Error, /\Aprofile 2: profiles of different values can't/)
      expect { Rperf.merge(path, path_to("none")) }.to raise_error(Rperf::Error, /there is no such file\z/)
      expect { Rperf.merge }.to raise_error(ArgumentError, "profiles: there must be one at least")
      expect { Rperf.merge([path]) }.to raise_error(ArgumentError, /\Aprofiles: must be a path/)
    end
  end

  describe "#diff and Rperf.diff" do
    let(:slow) { made([[[sort, work, main], 800], [[work, work, main], 100], [[wait, main], 500]]) }
    let(:slow_path) { path_to("slow.pb.gz").tap { |path| slow.save(path) } }

    def differences(*)
      JSON.parse(rperf("diff", "--format", "json", *).stdout, symbolize_names: true)
    end

    it "are those of rperf diff --format json" do
      expected = differences(path, slow_path)
      expect(loaded.diff(slow)).to eq(expected.except(:version).merge(version: 1))
      expect(Rperf.diff(path, slow_path)).to eq(expected)
      expect(expected[:rows]).to match([include(name: "Array#sort", base: 400_000_000, target: 800_000_000,
                                                delta: 400_000_000, percent: 100.0, change: "slower")])
      expect(loaded.diff(slow_path, sort: :total, normalize: :total, value: :cpu, limit: 1, hide: "main"))
        .to eq(differences("--sort", "total", "--normalize", "total", "--value", "cpu", "-n", "1", "--hide", "main",
                           path, slow_path))
    end

    it "take runs" do
      expect(Rperf.diff([path, profile], [slow, slow_path, slow]))
        .to eq(differences("--base", path, path, "--target", slow_path, slow_path, slow_path))
      expect(loaded.diff([slow, slow])).to include(base_runs: 1, target_runs: 2)
    end

    it "find nothing between a profile and itself" do
      expect(loaded.diff(loaded)).to include(rows: [], total: include(delta: 0, percent: 0.0, change: "noise"))
    end

    it "refuse what can't be compared" do
      heap = write_file("heap", PprofFile.go_heap.bytes)
      expect { loaded.diff(heap) }.to raise_error(Rperf::Error, /\Athe profiles can't be compared/)
      expect { loaded.diff(slow, normalize: "label:none") }
        .to raise_error(Rperf::Error, "the profiles can't be normalised: one has no samples with the label")
      expect { loaded.diff([]) }.to raise_error(ArgumentError, "target: there must be one profile at least")
      expect { loaded.diff(slow, normalize: :size) }.to raise_error(ArgumentError, /\Anormalize: must be :none/)
    end
  end

  describe "arguments" do
    {
      focus: ["(", 5, nil.to_a, "a\xff", "\xff".b, /(?=a)/], tagroot: [5, [5]],
      tagfocus: [/a/, "a=(", ["a", /b/], ["a", "b=("]],
      thread: [1.5, "("], pid: [-1, "1", 1.5, 2**40], value: ["none", 9, -1, []], by: [:gems, "label:", 5, nil],
      sort: [:size, "flat", nil], limit: [-1, 1.5, "5"], hide_ops: [1, "true"]
    }.each do |name, values|
      values.each do |value|
        it "refuse #{name}: #{value.inspect}, naming the argument" do
          expect { loaded.top(name => value) }.to raise_error(ArgumentError, /\A#{name}: \S/)
        end
      end
    end

    it "refuse others and unknown ones" do
      [101, -1, Float::NAN, Complex(1, 1), "5"].each do |least|
        expect { loaded.tree(least:) }.to raise_error(ArgumentError, /\Aleast: must be a percentage/)
      end
      expect { loaded.tree(bottom_up: 1) }.to raise_error(ArgumentError, /\Abottom_up: must be true or false/)
      expect { loaded.callers("") }.to raise_error(ArgumentError, /\Aname: must be the name of a method, .*, not ""\z/)
      expect { loaded.callers("Hash#[") }.to raise_error(ArgumentError, /\Aname: 'Hash#\[' is no valid regular expr/)
      expect { loaded.callers(nil) }.to raise_error(ArgumentError, /\Aname: must be/)
      expect { loaded.totals(focsu: "a") }.to raise_error(ArgumentError, /unknown keyword: :focsu/)
      expect { loaded.top(focus: BasicObject.new) }.to raise_error(ArgumentError, /BasicObject/)
    end

    it "take Regexps with Ruby's meaning of options" do
      [/array # a comment/ix, %r{a/b|Array#so.t}m, Regexp.new("Array")].each do |focus|
        expect(loaded.totals(focus:)[:left]).to eq(400_000_000)
      end
    end
  end
end
