# frozen_string_literal: true

require "objspace"

# Programs that have memory of a known kind and amount: it is in its row, and hardly any other row moves.
RSpec.describe "rperf memory", vm: true, if: Gem::Platform.local.os == "linux" do
  include Ports

  mb = 1 << 20
  # Malloc in a block of its own is neither rounded nor scattered by much.
  rounding = 3

  # A program that does `code` once it is asked to, and then waits.
  def doing(code, before: "", **options)
    program = <<~RUBY
      #{before}
      puts(defined?(Rperf) ? Rperf.listen : "ready")
      sleep 0.01 until File.exist?("go")
      #{code}
      File.write("done", "")
      sleep
    RUBY
    listening(program, **options) { |it| yield it.pid }
  end

  def finish_doing
    File.write(path_to("go"), "")
    wait_until("end of the work") { File.exist?(path_to("done")) }
  end

  def answer_of(*arguments)
    outcome = rperf("memory", "--json", *arguments.map(&:to_s))
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    JSON.parse(outcome.stdout)
  end

  # The rows in bytes, by their names.
  def rows_of(answer, column = "rss_bytes")
    answer["rows"].to_h { |row| [row["name"], row[column]] }.tap { |rows| rows.default = 0 }
  end

  # What the answer lacks, but for what musl's malloc never says.
  def lacks_of(answer) = answer["lacks"] - (RUBY_PLATFORM.include?("musl") ? ["malloc"] : [])

  def rss_of(pid) = File.read("/proc/#{pid}/status")[/^VmRSS:\s+(\d+) kB/, 1].to_i * 1024

  # The rows add up, and to what the kernel says.
  def expect_sum(answer, pid)
    total = answer["total"]["rss_bytes"]
    expect(rows_of(answer).values.sum).to eq(total)
    expect(total).to be_within(0.03 * total).of(rss_of(pid))
  end

  # By how much the rows have moved in the program, in MB.
  def moved(code, *options, **settings)
    doing(code, **settings) do |pid|
      before = answer_of(pid, *options)
      finish_doing
      after = answer_of(pid, *options)
      [before, after].each { |answer| expect(lacks_of(answer)).to eq([]) }
      expect_sum(after, pid)
      old, new = [before, after].map { |answer| rows_of(answer) }
      (old.keys | new.keys).to_h { |name| [name, (new[name] - old[name]) / (1 << 20).to_f] }
                           .tap { |changes| changes.default = 0.0 }
    end
  end

  # All rows but these have moved by less than a part of so many MB.
  def expect_others_to_stay(changes, *but, of:)
    others = changes.except(*but)
    expect(others.select { |_, change| change.abs >= 0.05 * of }).to eq({})
  end

  it "has rows of a program that does nothing, which add up to its RSS" do
    doing("") do |pid|
      answer = answer_of(pid)
      expect_sum(answer, pid)
      expect(answer).to include("kind" => "rperf memory", "pid" => pid, "ruby" => RUBY_VERSION)
      expect(lacks_of(answer)).to eq([])
      names = %w[heap_live malloc_in_use files_ruby] - (RUBY_PLATFORM.include?("musl") ? %w[malloc_in_use] : [])
      expect(rows_of(answer).values_at(*names)).to all(be > mb)
      page = rperf("memory", pid.to_s).stdout
      expect(page).to match(/\A#{pid} .*: RSS \d+\.\d\d MB, Ruby #{RUBY_VERSION}, taken in \d+\.\d ms/)
      expect(page).to match(/^ *\d+\.\d\d MB +\d+\.\d%  Ruby heap: live objects \([\d,]+\)$/)
      expect(page).to match(/^ *\d+\.\d\d MB +100\.0%  in all$/).and include("Ruby heap by size of slot")
    end
  end

  # Bytes of an object without instance variables.
  let(:slot) { ObjectSpace.memsize_of(Object.new) }

  it "has objects in Ruby's heap", musl: false, emulated: false do
    changes = moved("$objects = Array.new(1_000_000) { Object.new }")
    expect(changes["heap_live"]).to be_within(2).of(1_000_000.0 * slot / mb)
    # The Array's, and what the collector needs to know of the pages.
    expect(changes["malloc_in_use"]).to be_between(8_000_000.0 / mb, 20)
    expect_others_to_stay(changes, "heap_live", "heap_free", "malloc_in_use", of: 40)
  end

  it "has the contents of Strings in malloc's row", musl: false do
    changes = moved("$strings = Array.new(100) { 'x' * #{mb} }", "--objects")
    expect(changes["malloc_objects"]).to be_within(rounding).of(100)
    expect_others_to_stay(changes, "malloc_objects", of: 100)
  end

  it "has what a thread has from malloc, in whatever many heaps that is", musl: false, emulated: false do
    strings = 300_000
    changes = moved("Thread.new { $a = Array.new(#{strings}) { 'x' * 1000 } }.join")
    malloc = strings * (1000 + 16 + 8) / mb.to_f
    expect(changes["malloc_in_use"] + changes["malloc_free"]).to be_within(0.1 * malloc).of(malloc)
    expect(changes["other"].abs).to be < 0.02 * malloc
  end

  it "doesn't take Ruby's heap for malloc's where the VM isn't asked" do
    before = "$objects = Array.new(1_000_000) { Object.new }; $threads = Array.new(50) { Thread.new { sleep } }"
    doing("", before:) do |pid|
      finish_doing
      answer = answer_of(pid, "--no-wake")
      expect_sum(answer, pid)
      expect(lacks_of(answer).size).to eq(1)
      rows = rows_of(answer)
      expect(rows["heap_and_other"]).to be > 38 * mb
      expect(rows["malloc_in_use"]).to be < 30 * mb
      write_file("less.json", rperf("memory", pid.to_s, "--no-wake", "-o", "-").stdout)
      page = rperf("memory", "--base", "less.json", pid.to_s).stdout
      expect(page).to include("not known apart in both", "Before: What is Ruby's heap isn't known")
      expect(page).not_to include("Ruby heap: live objects")
    end
  end

  it "looks at no heap that other Ractors change" do
    doing("$ractor = Ractor.new { sleep }; sleep 0.1", env: { "RUBYOPT" => "-W0" }) do |pid|
      finish_doing
      answer = answer_of(pid, "--objects")
      expect_sum(answer, pid)
      expect(lacks_of(answer)).to match([{ "answer" => /other Ractors/ }])
      expect(answer["pools"]).to eq([])
    end
  end

  it "has slots that are free, because nine tenths of the objects have gone" do
    before = "$objects = Array.new(1_000_000) { Object.new }; GC.start"
    # In place: nothing on a stack may hold the others.
    code = "place = -1; $objects.select! { ((place += 1) % 10).zero? }; GC.start; GC.start"
    changes = moved(code, before:)
    free = -changes["heap_live"]
    expect(free).to be > 0.8 * 900_000 * slot / mb
    expect(changes["heap_free"] + changes["heap_empty"]).to be_within(2).of(free)
    expect_others_to_stay(changes, "heap_live", "heap_free", "heap_empty", "malloc_in_use", "malloc_free", of: 36)
  end

  it "has the stacks of threads", musl: false, emulated: false do
    deep = "def deep(n) = n.zero? ? sleep : deep(n - 1)"
    changes = moved("200.times { Thread.new { deep(800) } }; sleep 1", before: deep)
    # A frame is some 56 bytes of the VM's stack, with its locals and environment.
    expect(changes["vm_stacks"]).to be > 200 * 40_000.0 / mb
    expect(changes["thread_stacks"]).to be > 200 * 8000.0 / mb
    stacks = changes["vm_stacks"] + changes["thread_stacks"]
    expect(changes.values.sum - stacks).to be < 0.3 * stacks
  end

  it "has the stacks of fibers" do
    changes = moved("$fibers = Array.new(2000) { Fiber.new { Fiber.yield }.tap(&:resume) }")
    # At least a page of the VM's stack and one of the native stack.
    expect(changes["fiber_stacks"]).to be > 2000 * 8000.0 / mb
    expect_others_to_stay(changes, "fiber_stacks", of: 5 * changes["fiber_stacks"])
  end

  it "has what a compiler has made", musl: false, unless: Compilers::FLAGS.empty? do
    code = "200.times { |i| eval \"def m\#{i}(a) = a.to_s + 'x' * 3; 100.times { m\#{i}(1) }\" }"
    changes = moved(code, env: { "RUBYOPT" => "#{Compilers::FLAGS.values.first} -W0" })
    expect(changes.values_at("jit_code", "jit_data")).to all(be > 0.05)
  end

  describe "with an extension that has memory from malloc", musl: false do
    before do
      compiler = RbConfig::CONFIG["CC"].split
      library = path_to("blocks.#{RbConfig::CONFIG["DLEXT"]}")
      source = File.join(Commands::ROOT, "spec/fixtures/blocks.c")
      headers = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |it| "-I#{it}" }
      compiled = run(*compiler, *headers, "-shared", "-fPIC", "-w", "-o", library, source)
      expect(compiled.status).to be_success, compiled.stderr
    end

    it "has it in the row of C code" do
      changes = moved("Blocks.take(1, 100 << 20)", "--objects", before: "require './blocks'")
      expect(changes["malloc_code"]).to be_within(rounding).of(100)
      expect_others_to_stay(changes, "malloc_code", of: 100)
    end

    it "has small blocks there, too", emulated: false do
      changes = moved("Blocks.take(100_000, 1024)", "--objects", before: "require './blocks'")
      # With the word in front of each, and the list of them.
      expect(changes["malloc_code"]).to be_within(rounding).of((100_000 * (1024 + 16 + 8)) / mb.to_f)
      expect_others_to_stay(changes, "malloc_code", of: 100)
    end

    it "has what it gives back, and malloc keeps, in the row of free memory", emulated: false do
      before = "require './blocks'; Blocks.take(100_000, 1024)"
      changes = moved("Blocks.give_back", "--objects", before:)
      expect(changes["malloc_free"]).to be_within(rounding).of(99)
      expect(changes["malloc_code"]).to be_within(rounding).of(-99)
      expect_others_to_stay(changes, "malloc_free", "malloc_code", of: 100)
    end

    it "has it with jemalloc, too" do
      # That of the system, or of Redis among the gems of Debian.
      systems = ["/usr/", *Gem.path.filter_map { |path| path[%r{\A.*/usr/(?=share/)}] }]
      library = systems.flat_map { |system| Dir["#{system}lib/{,*/}libjemalloc.so.2"] }.first
      skip "there is no jemalloc" unless library
      maps = run(ruby, "-e", "print File.read('/proc/self/maps')", env: { "LD_PRELOAD" => library }).stdout
      skip "jemalloc can't be loaded" unless maps.include?(library)
      changes = moved("Blocks.take(100_000, 1024)", before: "require './blocks'", env: { "LD_PRELOAD" => library })
      expect(changes["malloc_in_use"]).to be_within(5).of(98)
      expect_others_to_stay(changes, "malloc_in_use", of: 100)
    end
  end

  it "says what a forked program shares", musl: false, emulated: false do
    code = "fork { File.write('pid', Process.pid.to_s); File.rename('pid', 'child'); sleep }; " \
           "sleep 0.01 until File.exist?('child')"
    doing(code, before: "$strings = Array.new(50) { 'x' * #{mb} }") do
      finish_doing
      child = File.read(path_to("child")).to_i
      answer = answer_of(child)
      shared, pss, rss = %w[shared_bytes pss_bytes rss_bytes].map { |column| rows_of(answer, column)["malloc_in_use"] }
      expect([rss, shared]).to all(be > 50 * mb)
      expect(pss).to be_within(0.2 * rss).of(rss / 2)
      table = rperf("memory", "--pss", child.to_s).stdout
      expect(table).to match(/^ +RSS +RSS% +PSS +shared +of$/)
    end
  end

  it "keeps rows in a file, shows them, and says what has changed since", musl: false do
    doing("$strings = Array.new(50) { 'x' * #{mb} }") do |pid|
      kept = rperf("memory", pid.to_s, "-o", "old.json")
      expect([kept.stdout, kept.stderr]).to match(["", /\Arperf: wrote old.json \(RSS \d+\.\d\d MB\)\n\z/])
      finish_doing
      expect(answer_of("old.json")).to eq(JSON.parse(File.read(path_to("old.json"))))
      expect(rperf("memory", "old.json").stdout).to match(/\A#{pid} .*: RSS/)
      page = rperf("memory", "--base", "old.json", pid.to_s).stdout
      expect(page).to match(/^compared with \d+ s before$/)
      change = page[/^ *\d+\.\d\d MB +\d+\.\d\d MB +\+(\d+\.\d\d) MB  malloc: in use$/, 1]
      expect(change.to_f).to be_within(rounding).of(50)
      changes = answer_of("--base", "old.json", pid)
      row = changes["rows"].find { |it| it["name"] == "malloc_in_use" }
      expect(row["now_bytes"] - row["before_bytes"]).to eq(row["change_bytes"])
      expect(changes["kind"]).to eq("rperf memory change")
    end
  end

  it "shows of a program without a port what the kernel knows, and says what is missing" do
    pid = Process.spawn(clean_environment, ruby, "-e", "$stdout.sync = true; puts; sleep", out: path_to("out"))
    wait_until("a program that has started") { File.size?(path_to("out")) }
    answer = answer_of(pid)
    expect_sum(answer, pid)
    expect(answer).to include("lacks" => ["port"], "ruby" => nil, "malloc" => nil)
    expect(rows_of(answer).values_at("files_ruby", "malloc_unknown", "heap_and_other")).to all(be_positive)
    page = rperf("memory", pid.to_s)
    expect([page.status.exitstatus, page.stdout]).to match([0, /The program has no port.*RPERF_LISTEN=1/])
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "shows what it can of a program that is stopped" do
    doing("") do |pid|
      Process.kill(:STOP, pid)
      wait_until("a stopped program") { File.read("/proc/#{pid}/stat").include?(") T ") }
      answer = answer_of(pid)
      expect(answer["lacks"].first["answer"]).to include("SIGSTOP")
      expect_sum(answer, pid)
    end
  end

  it "refuses in a line what is no program and no file of its own" do
    write_file("other.json", "{}")
    write_file("damaged.json", '{"kind":"rperf memory","version":1,"pid":1,"time_ns":1,"rows":[],' \
                               '"total":{"rss_bytes":1,"pss_bytes":1,"shared_bytes":0,"swap_bytes":0}}')
    {
      ["2147483646"] => [1, /there is no process 2147483646/],
      ["0"] => [2, /'0': processes have numbers from 1 on/],
      ["none.json"] => [2, /none.json.*no such file/],
      ["other.json"] => [2, /other.json: it is no file of 'rperf memory -o'/],
      ["damaged.json"] => [2, /damaged.json: it is damaged/],
      ["--base", "other.json", "1", "-o", "x"] => [2, /leave --base out/],
      ["--pss", "--json", "1"] => [2, /leave --pss out/],
      ["-o", "x.csv", "1"] => [2, /-o x\.csv: rperf memory writes no \.csv: \.json has all rows$/],
      ["-o", "x.html", "1"] => [2, /-o x\.html: rperf memory writes no \.html: /],
      ["--objects", "other.json"] => [2, /--objects is for a program/]
    }.each do |arguments, (status, line)|
      outcome = rperf("memory", *arguments)
      expect([outcome.status.exitstatus, outcome.stderr.lines.size]).to eq([status, 1]), outcome.stderr
      expect(outcome.stderr).to match(line)
    end
  end

  it "leaves the program's methods alone, whatever it has put in place of Ruby's" do
    code = <<~RUBY
      class << GC
        %i[stat stat_heap latest_gc_info config start].each { |name| define_method(name) { |*, **| abort "asked" } }
      end
    RUBY
    doing(code) do |pid|
      finish_doing
      expect(lacks_of(answer_of(pid, "--objects"))).to eq([])
    end
  end
end
