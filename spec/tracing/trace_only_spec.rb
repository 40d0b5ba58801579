# frozen_string_literal: true

require "json"

# Chosen methods: their calls are counted, all other code runs as if nobody looked.
RSpec.describe "Tracing of chosen methods", vm: true do
  include Traces

  lib = "-I#{File.join(Commands::ROOT, "lib")}"

  shop = <<~RUBY
    module Shop
      class Order
        def total(n) = n.zero? ? 0 : 1 + total(n - 1)
        def self.find(id) = id
        def fails = raise(ArgumentError, "no")
        def leaves = [1, 2].each { |it| return it }
        def outer = 3.times { inner }
        def inner = Order.find(1)
        def lazy = yield
        define_method(:made) { |x| [x].each { |y| return y } }
        define_method(:plain) { |x| x }
        alias also plain
        private def hidden = 7
      end
    end
    ORDER = Shop::Order.new
  RUBY

  # Calls by path, and the lines about the trace, of code that runs with chosen methods.
  helper = <<~RUBY
    require "json"
    def told(profile)
      stack = []
      rows = Hash.new(0)
      profile.tree(least: 0, value: "calls").each do |row|
        stack = stack.take(row[:depth]) << row[:name]
        rows[stack.join(" > ")] += row[:self]
      end
      text = Rperf.const_get(:Asking).natives.of(profile).encode(:text).force_encoding("UTF-8")
      { rows:, lines: text.lines.grep(/^Traced: /) }
    end

    def counted(only, **options, &) = told(Rperf.trace(only:, **options, &))
  RUBY

  define_method(:result) do |program, *options, env: {}|
    outcome = run(ruby, *options, lib, "-rrperf", write_file("only.rb", shop + helper + program), env:)
    raise outcome.stderr unless outcome.status.success?

    expect(outcome.stderr).to eq("")
    JSON.parse(outcome.stdout.lines.last, symbolize_names: true)
  end

  define_method(:rows) { |*arguments| result(*arguments)[:rows].transform_keys(&:to_s) }

  describe "counts" do
    it "calls, recursive ones too, and nothing else" do
      found = rows('puts counted("Shop::Order#total") { 3.times { ORDER.total(2) }; ORDER.inner }.to_json')
      total = "Shop::Order#total"
      expect(found).to eq(total => 3, "#{total} > #{total}" => 3, "#{total} > #{total} > #{total}" => 3)
    end

    it "calls below the nearest chosen one, of singleton methods too" do
      found = rows('puts counted(["Shop::Order#outer", "Shop::Order.find"]) { 2.times { ORDER.outer } }.to_json')
      expect(found).to eq("Shop::Order#outer" => 2, "Shop::Order#outer > Shop::Order.find" => 6)
    end

    it "calls that end by an exception, a return from a block, or a throw" do
      found = rows(<<~RUBY)
        only = %w[Shop::Order#fails Shop::Order#leaves Shop::Order#lazy Shop::Order#total]
        puts(counted(only) do
          4.times { ORDER.fails rescue ORDER.total(0) }
          2.times { ORDER.leaves }
          5.times { catch(:out) { ORDER.lazy { throw :out } } }
          3.times { ORDER.lazy { break } }
          ORDER.total(0)
        end.to_json)
      RUBY
      expect(found).to eq("Shop::Order#fails" => 4, "Shop::Order#leaves" => 2, "Shop::Order#lazy" => 8,
                          "Shop::Order#total" => 5)
    end

    it "methods that blocks define, and aliases as what they stand for" do
      found = rows(<<~RUBY)
        only = %w[Shop::Order#made Shop::Order#plain Shop::Order#total]
        puts counted(only) { 2.times { ORDER.made(1); ORDER.plain(1); ORDER.also(1); ORDER.total(0) } }.to_json
      RUBY
      expect(found.values_at("Shop::Order#total", "Shop::Order#made")).to eq([2, 2])
      expect(found.select { |path, _| path.match?(/plain|also/) }.values.sum).to eq(4)
      expect(found.keys.grep(/>/)).to be_empty
    end

    it "all methods that a class has itself, private ones included" do
      found = rows(<<~RUBY)
        class Special < Shop::Order
          def one = 1
          private def two = one
        end
        puts counted("Special#*") { s = Special.new; s.send(:two); s.inner; s.to_s }.to_json
      RUBY
      expect(found).to eq("Special#two" => 1, "Special#two > Special#one" => 1)
    end

    it "in threads and fibers" do
      found = rows(<<~RUBY)
        only = %w[Shop::Order#lazy Shop::Order#inner]
        puts(counted(only) do
          threads = Array.new(4) { Thread.new { 50.times { ORDER.lazy { Thread.pass; ORDER.inner } } } }
          threads.each(&:join)
          fibers = Array.new(3) { Fiber.new { ORDER.lazy { 5.times { ORDER.inner; Fiber.yield } } } }
          6.times { fibers.each { |it| it.resume if it.alive? } }
          each = Enumerator.new { |it| ORDER.lazy { loop { it << ORDER.inner } } }
          ORDER.lazy { 3.times { each.next; ORDER.inner } }
        end.to_json)
      RUBY
      expect(found).to eq("Shop::Order#lazy" => 205, "Shop::Order#lazy > Shop::Order#inner" => 221)
    end

    it "in each thread by itself, whatever objects threads and fibers have" do
      found = rows(<<~RUBY)
        puts(counted(%w[Shop::Order#lazy Shop::Order#inner]) do
          300.times do |turn|
            Thread.new { each = Enumerator.new { |it| 2.times { it << ORDER.inner } }; ORDER.lazy { each.next; ORDER.inner; each.next } }.join
            GC.start if turn % 50 == 0
          end
        end.to_json)
      RUBY
      expect(found).to eq("Shop::Order#lazy" => 300, "Shop::Order#inner" => 600,
                          "Shop::Order#lazy > Shop::Order#inner" => 300)
    end

    it "where a session begins in a fiber, beside others that were there" do
      told = result(<<~RUBY)
        others = Array.new(2) { Fiber.new { [1].each { [1].each { Fiber.yield } } } }.each(&:resume)
        profile = nil
        main = Fiber.new do
          profile = Rperf.trace(only: %w[Shop::Order#lazy Shop::Order#inner]) { ORDER.lazy { Fiber.yield; ORDER.inner } }
        end
        main.resume
        others.each(&:resume)
        main.resume
        puts told(profile).to_json
      RUBY
      expect(told[:rows]).to eq("Shop::Order#lazy": 1, "Shop::Order#lazy > Shop::Order#inner": 1)
      expect(told[:lines].join).to include("Shop::Order#lazy: 1 call has ended")
      expect(told[:lines].join).not_to include("no duration")
    end

    it "a module's method as one, whatever extends itself with it" do
      told = result(<<~RUBY)
        module Paged; def page = 1; end
        puts counted("Paged#page") { 500.times { Object.new.extend(Paged).page } }.to_json
      RUBY
      expect(told[:rows]).to eq("Paged#page": 500)
      expect(told[:lines].grep(/Paged#page/)).to match([/: Paged#page: 500 calls have ended, /])
    end

    it "on after a stack overflow, and says what has no duration" do
      told = result(<<~RUBY, env: { "RUBY_THREAD_VM_STACK_SIZE" => "200000" })
        def deep = ORDER.lazy { deep }
        puts counted("Shop::Order#lazy") { begin; deep; rescue SystemStackError; 2.times { ORDER.lazy { 1 } }; end }.to_json
      RUBY
      expect(told[:rows].size).to be > 10
      expect(told[:rows][:"Shop::Order#lazy"]).to eq(3)
      expect(told[:lines].join).to match(/: \d+ calls have no duration: nothing told of their ends$/)
    end

    it "what is on the stack when the trace begins or ends as far as it ran then" do
      found = rows(<<~RUBY)
        class Shop::Order
          def starts = (Rperf.start(mode: :trace, only: "Shop::Order#*"); inner)
          def stops = (inner; $profile = Rperf.stop; inner)
        end
        ORDER.starts
        ORDER.stops
        puts told($profile).to_json
      RUBY
      expect(found).to eq("Shop::Order#inner" => 1, "Shop::Order#stops" => 1,
                          "Shop::Order#stops > Shop::Order#inner" => 1)
    end
  end

  describe "times" do
    it "calls from their beginning to their end, less what chosen ones below have" do
      times, lines = result(<<~RUBY).values_at(:times, :lines)
        class Shop::Order
          def slow = (sleep 0.03; part)
          def part = sleep(0.05)
        end
        profile = Rperf.trace(only: %w[Shop::Order#slow Shop::Order#part]) { 2.times { ORDER.slow } }
        puts({ times: profile.top(value: "call_time").to_h { |row| [row[:name], row[:self]] },
               lines: told(profile)[:lines] }.to_json)
      RUBY
      expect(times[:"Shop::Order#slow"]).to be_between(60_000_000, 200_000_000)
      expect(times[:"Shop::Order#part"]).to be_between(100_000_000, 300_000_000)
      line = lines.grep(/Shop::Order#slow: 2 calls have ended, /).first
      ms = line.match(/p50 ([\d.]+) ms, p99 ([\d.]+) ms, max ([\d.]+) ms \(at \d{4}-\d\d-\d\dT[\d:.]+Z\)$/)
      expect(ms.captures.map(&:to_f)).to all(be_between(70, 500))
    end

    it "keeps the slowest calls apart, with what was called in them" do
      rows = result(<<~RUBY)
        class Shop::Order
          def page(n) = n.times { part }
          def part = sleep(0.001)
        end
        profile = Rperf.start(only: %w[Shop::Order#page Shop::Order#part], mode: :wall) do
          20.times { |n| Rperf.label(page: n) { ORDER.page(n == 13 ? 30 : 1) } }
        end
        calls = profile.top(by: "label:%call", value: "calls")
        slow = profile.filter(tagfocus: "page=13")
        puts({ calls: calls.to_h { |row| [row[:name], row[:self]] },
               slow: slow.top(value: "calls").to_h { |row| [row[:name], row[:self]] } }.to_json)
      RUBY
      expect(rows[:slow]).to include("Shop::Order#page": 1, "Shop::Order#part": 30)
      slowest = rows[:calls].keys.grep(/\AShop::Order#page [\d.]+ ms at \d{4}-/)
      expect(slowest.size).to eq(5)
      expect(rows[:calls].values_at(*slowest).max).to eq(31)
      expect(rows[:calls].values.sum).to eq(20 + 49)
    end
  end

  describe "finds methods" do
    it "of classes that are defined later, and of those that are defined anew" do
      found = rows(<<~RUBY)
        puts(counted(%w[Later#one Later.two Later#three]) do
          eval("class Later; def one = 1; class << self; def two = 2; end; end")
          3.times { Later.new.one; Later.two }
          eval("class Later; def one = three; def three = 3; end")
          2.times { Later.new.one }
        end.to_json)
      RUBY
      expect(found).to eq("Later#one" => 5, "Later.two" => 3, "Later#one > Later#three" => 2)
    end

    it "of a script's top level, and of files that it requires" do
      write_file("part.rb", "def helper = top\nmodule Deep\n  class Part\n    def run = helper\n  end\nend")
      write_file("script.rb", "def top = 1\nrequire_relative 'part'\n5.times { top }\n2.times { Deep::Part.new.run }")
      outcome = rperf("trace", "--only", "Object#top", "--only", "Deep::Part#run,Object#helper", "-o", "t.pb.gz", ruby,
                      "script.rb")
      expect(outcome.stderr).to match(/\Arperf: wrote t.pb.gz \(11 calls, [\d.]+ s\)\n\z/)
      rows = Rperf.load(path_to("t.pb.gz")).top(value: "calls").to_h { |row| [row[:name], row[:self]] }
      expect(rows).to eq("Object#top" => 7, "Deep::Part#run" => 2, "Object#helper" => 2)
    end

    it "and a line says which were never found, in no process" do
      code = "if fork then Process.wait else eval('class Made; def x = 1; end'); Made.new.x end"
      line = "rperf: only: Typo#x was never found; check the name, and that the program loads its file\n"
      %w[record trace].each do |command|
        outcome = rperf(command, "--only", "Typo#x", "--only", "Made#x", ruby, "-e", code)
        expect([outcome.status.exitstatus, outcome.stderr.lines[1..]]).to eq([0, [line]])
      end
      env = { "RPERF_ENABLED" => "1", "RPERF_ONLY" => "Typo#x,lib/none/**", "RPERF_OUTPUT" => "env.pb.gz" }
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "1", env:)
      of_path = "check that the program loads it; a path is absolute, or from the working directory on"
      expect(outcome.stderr.lines).to eq([line, "rperf: only: lib/none/** was never found; #{of_path}\n"])
    end

    it "and a line says which are not of Ruby code" do
      code = "class Made; attr_reader :id; def x = id; end; 3.times { Made.new.x }"
      outcome = rperf("trace", "--only", "Made#id,Made#x", ruby, "-e", code)
      expect([outcome.status.exitstatus, outcome.stderr.lines[1..]])
        .to eq([0, ["rperf: only: Made#id is not written in Ruby: its calls can't be counted alone\n"]])
    end

    it "that were not there at a snapshot, and says which never came" do
      lines, counts = result(<<~RUBY).values_at(:lines, :counts)
        Rperf.start(mode: :trace, only: %w[Made#late Nowhere#never])
        Made = Class.new
        Made.define_method(:late) { 1 }
        Made.new.late
        first = Rperf.snapshot(clear: true)
        2.times { Made.new.late }
        profile = Rperf.stop
        counts = [first, profile].map { |it| it.top(value: "calls").sum { |row| row[:self] } }
        puts({ counts:, lines: told(profile)[:lines] }.to_json)
      RUBY
      expect(counts).to eq([0, 2])
      expect(lines.grep(/not found/)).to match([/: Nowhere#never was not found$/])
    end

    it "without loading anything, or calling a program's own methods" do
      write_file("auto.rb", "raise 'loaded'")
      told = result(<<~RUBY)
        autoload :Auto, "\#{__dir__}/auto.rb"
        class Odd
          def self.name = raise("name")
          def self.hash = raise("hash")
          define_method(:block) { 1 }
          def self.instance_method(_) = raise("instance_method")
          def self.const_get(_) = raise("const_get")
          def odd = 1
          def self.method_added(_) = raise("method_added")
        end
        puts counted(%w[Auto#x Odd#odd Odd#block Odd::Inner#x]) { Odd.new.odd; eval("class Odd; 1; end") }.to_json
      RUBY
      expect(told[:rows]).to eq("Odd#odd": 1)
      expect(told[:lines].grep(/not found/).size).to eq(2)
    end

    it "of this class only, not of one of the same name elsewhere" do
      told = result(<<~RUBY)
        class Order; def total = 1; end
        class Parent; class Inner; def run = 1; end; end
        class Heir < Parent; end
        module Admin; end
        puts counted(%w[Admin::Order#total Heir::Inner#run]) { Order.new.total; Parent::Inner.new.run }.to_json
      RUBY
      expect(told[:rows]).to eq("Parent::Inner#run": 1)
      expect(told[:lines].grep(/not found/)).to match([/: Admin::Order#total was not found$/])
    end

    it "that a class inherits or has modules in front of, and says what is counted" do
      told = result(<<~RUBY)
        class Child < Shop::Order; end
        module Front; def inner = super; end
        Shop::Order.prepend(Front)
        puts counted(%w[Child#total Shop::Order#inner]) { Child.new.total(0); ORDER.total(0); ORDER.inner }.to_json
      RUBY
      expect(told[:rows]).to eq("Shop::Order#total": 2, "Shop::Order#inner": 1)
      expect(told[:lines].join).to include("Child#total is Shop::Order's: its calls on all objects are counted")
    end
  end

  describe "refuses" do
    it "methods of C, and what is no name, in one line" do
      script = write_file("script.rb", "puts :ran")
      outcome = rperf("trace", "--only", "Array#sort", ruby, script)
      expect(outcome.stdout).to eq("ran\n")
      expect(outcome.stderr.lines.first)
        .to match(/\Arperf: only: Array#sort is not written in Ruby: its calls can't be counted alone/)
      expect(outcome.status.exitstatus).to eq(1)
      outcome = rperf("trace", "--only", "sort", ruby, script)
      expect(outcome.stderr)
        .to eq("rperf: --only must be methods or their files, such as Order#total or app/**, not 'sort'\n")
      expect(outcome.status.exitstatus).to eq(2)
    end

    it "levels that have more than chosen methods can tell" do
      expect { Rperf.trace(only: "A#b", calls: :all) { nil } }
        .to raise_error(ArgumentError, "only: 'A#b' goes with calls: :ruby or nil, not with calls: :all")
      message = /\Aonly: must be methods or their files, such as /
      expect { Rperf.start(only: [], mode: :wall) }.to raise_error(ArgumentError, message)
      expect { Rperf.start(only: [:a]) }.to raise_error(ArgumentError, message)
    end
  end

  describe "beside sampling" do
    it "has both in one profile" do
      write_file("both.rb", <<~RUBY)
        class Work
          def step = (i = 0; i += 1 while i < 20_000)
        end
        300.times { Work.new.step }
      RUBY
      expect(rperf("record", "--only", "Work#step", "-o", "both.pb.gz", ruby, "both.rb").stderr)
        .to start_with("rperf: wrote both.pb.gz")
      profile = Rperf.load(path_to("both.pb.gz"))
      row = ->(value) { profile.top(value:).find { |it| it[:name] == "Work#step" } }
      expect([row["calls"][:self], profile[:mode]]).to eq([300, :cpu])
      expect(row["cpu"][:self]).to be > 0
      expect(row["call_time"][:self]).to be >= row["cpu"][:self] / 2
      expect(rperf("report", "--top", "both.pb.gz").stdout).to match(/^ *300 .*Work#step/)
    end

    it "counts by label" do
      counts = result(<<~RUBY)
        profile = Rperf.start(only: "Shop::Order#inner") do
          ORDER.inner
          Rperf.label(page: "a") { 2.times { ORDER.inner } }
          Rperf.label(page: "b") { Thread.new { ORDER.inner }.join; 4.times { ORDER.inner } }
        end
        rows = %w[a b].to_h { |it| [it, profile.filter(tagfocus: "page=\#{it}").top(value: "calls").sum { |r| r[:self] }] }
        puts rows.merge(all: profile.top(value: "calls").sum { |row| row[:self] }).to_json
      RUBY
      expect(counts).to eq(a: 2, b: 4, all: 8)
    end

    it "counts by label in a trace, too, in which a section only puts labels on" do
      counts = result(<<~RUBY)
        profile = Rperf.trace(only: "Shop::Order#inner") do
          Rperf.label(page: "a") { 2.times { ORDER.inner } }
          Rperf.profile(page: "b") { 3.times { ORDER.inner } }
        end
        puts %w[a b].to_h { |it| [it, profile.filter(tagfocus: "page=\#{it}").top(value: "calls").sum { |r| r[:self] }] }.to_json
      RUBY
      expect(counts).to eq(a: 2, b: 3)
    end
  end

  it "traces what the program forks and starts, too" do
    write_file("work.rb", "class Work; def step = 1; end")
    write_file("children.rb", <<~RUBY)
      require_relative "work"
      Work.new.step
      Process.wait(fork { 2.times { Work.new.step } })
      system(RbConfig.ruby, "-r./work", "-e", "3.times { Work.new.step }")
      Process.wait(fork { exit!(0) })
    RUBY
    rperf("trace", "--only", "Work#step", "-o", "c.pb.gz", ruby, "children.rb")
    rows = Rperf.load(path_to("c.pb.gz")).top(value: "calls")
    expect(rows.to_h { |row| [row[:name], row[:self]] }).to eq("Work#step" => 6)
  end

  it "leaves a forked child that isn't profiled as it would be" do
    told = result(<<~RUBY)
      read, write = IO.pipe
      profile = Rperf.trace(only: "Shop::Order#inner") do
        ORDER.inner
        Process.wait(fork { 3.times { ORDER.inner }; write.puts(Rperf.running?.inspect); exit!(0) })
      end
      puts told(profile).merge(child: read.gets.chomp).to_json
    RUBY
    expect(told).to include(rows: { "Shop::Order#inner": 1 }, child: "false")
  end

  it "stays right while the collector moves and frees objects" do
    found = rows(<<~RUBY)
      puts(counted(%w[Shop::Order#lazy Temp#x]) do
        60.times do |turn|
          eval("class Temp; def x = \#{turn}; end")
          ORDER.lazy { Temp.new.x }
          GC.start
          GC.compact if turn % 20 == 0 && GC.respond_to?(:compact)
        end
      end.to_json)
    RUBY
    expect(found).to eq("Shop::Order#lazy" => 60, "Shop::Order#lazy > Temp#x" => 60)
  end

  it "doesn't count in other Ractors, and says so" do
    told = result(<<~RUBY, "-W0")
      class Counted; def self.x = 1; end
      puts(counted("Counted.x") do
        Counted.x
        ractor = Ractor.new { 3.times { Counted.x } }
        ractor.respond_to?(:value) ? ractor.value : ractor.take
      end.to_json)
    RUBY
    expect(told[:rows]).to eq("Counted.x": 1)
  end

  it "is refused under ZJIT, which would stay slower", skip: ("no ZJIT" unless Compilers::FLAGS.key?("ZJIT")) do
    outcome = run(ruby, "--zjit", lib, "-rrperf", "-e", 'Rperf.trace(only: "A#b") { 1 } rescue puts($!.message)')
    expect(outcome.stdout).to eq("only: is not possible under ZJIT, which would not compile the methods again\n")
  end

  it "is no slower afterwards than before, whatever compiles", alone: true do
    [[], *Compilers::FLAGS.slice("YJIT").values.map { |flag| [flag] }].each do |options|
      before, after, during = result(<<~RUBY, *options).values_at(:before, :after, :during)
        def tarai(x, y, z) = x <= y ? y : tarai(tarai(x - 1, y, z), tarai(y - 1, z, x), tarai(z - 1, x, y))
        def other = 1
        def fastest = Array.new(40) do
          started = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
          tarai(10, 5, 0)
          Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - started
        end.min
        before = fastest
        during = nil
        profile = Rperf.trace(only: %w[Object#tarai Shop::Order#inner]) { tarai(8, 4, 0); during = 1 }
        raise "not counted" unless profile.top(value: "calls").first[:self] == 12_605
        puts({ before:, after: fastest, during: }.to_json)
      RUBY
      # A compiler that gave up takes more than 5 times as long.
      expect(after / before).to be < 2.0, "#{options}: #{before} s before, #{after} s after (#{during})"
    end
  end
end
