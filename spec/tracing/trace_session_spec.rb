# frozen_string_literal: true

require "json"

# A trace as a session: the command, the API, processes, and what the numbers add up to.
RSpec.describe "Tracing", vm: true do
  include Traces

  tarai = "def tarai(x, y, z) = x <= y ? y : tarai(tarai(x - 1, y, z), tarai(y - 1, z, x), tarai(z - 1, x, y))\n"

  def told(program, *, **) = super(program, *, symbolize_names: true, **)

  def calls_in(path, name)
    Rperf.load(path).top(value: "calls", sort: :total).find { |row| row[:name] == name }&.fetch(:self)
  end

  describe "by the command" do
    it "counts each call, and writes a profile for all views" do
      write_file("tarai.rb", "#{tarai}tarai(8, 4, 0)")
      outcome = rperf("trace", ruby, "tarai.rb")
      expect(outcome.stderr).to match(/\Arperf: wrote rperf.data \(12,605 calls, [\d.]+ s\)\n\z/)
      expect(calls_in(path_to("rperf.data"), "Object#tarai")).to eq(12_605)
      top = rperf("report", "--top").stdout
      expect(top).to match(/^Type: wall, /).and match(/^Traced: calls ruby, clock (?:TSC|monotonic)$/)
      expect(top).to match(/^Traced: process \d+: 12,605 calls, \d+ calls of blocks$/)
      expect(top).to match(%r{^ *calls  blocks  self/call  total/call }).and match(/^ *12,605 +- .*Object#tarai/)
      expect(rperf("report", "--tree").stdout).to include("Object#tarai")
    end

    it "counts operators at level all, and counts alone at level count" do
      write_file("tarai.rb", "#{tarai}tarai(8, 4, 0)")
      rperf("trace", "--calls", "all", "-o", "all.pb.gz", ruby, "tarai.rb")
      expect(calls_in(path_to("all.pb.gz"), "Integer#<=")).to eq(12_605)
      text = rperf("trace", "-p", "--calls", "count", ruby, "tarai.rb").stdout
      expect(text).to match(/\ATotal: 12,605 \(calls\)\nTraced: calls count, clock none\nTraced: .*: 12,605 calls, /)
      expect(text).to match(/^ +12,605 100\.0%  Object#tarai/)
    end

    it "prints text with the calls of each method" do
      write_file("tarai.rb", "#{tarai}tarai(8, 4, 0)")
      text = rperf("trace", "-p", ruby, "tarai.rb").stdout
      cost = "[\\d,.]+ ms raw, of which [\\d,.]+ ms are the cost of [\\d,]+ events \\(\\d+ ns each\\)"
      expect(text).to match(/^Traced: process \d+: #{cost}/)
      expect(text).to match(/^ +[\d.]+ \S+ +[\d.]+% +12,605 +-  Object#tarai/)
    end

    it "says as many calls at the end as the report does, with those of blocks apart" do
      write_file("blocks.rb", "def leaf = 1\n1200.times { leaf }")
      outcome = rperf("trace", ruby, "blocks.rb")
      counts = outcome.stderr[/\((.*), [\d.]+ s\)/, 1]
      expect(counts).to match(/\A1,2\d\d calls, 1,2\d\d calls of blocks\z/)
      top = rperf("report", "--top").stdout
      expect(top).to match(/\AType: wall, .*, #{counts}, duration /).and(match(/^Traced: process \d+: #{counts}$/))
    end

    it "traces what the program forks and starts, too" do
      write_file("children.rb", <<~RUBY)
        def leaf = 1
        leaf
        Process.wait(fork { 2.times { leaf } })
        system(RbConfig.ruby, "-e", "def leaf = 1; 3.times { leaf }")
      RUBY
      outcome = rperf("trace", "-o", "c.pb.gz", ruby, "children.rb")
      expect(outcome.stderr).to match(/calls of 3 processes/)
      numbers = rperf("report", "--top", "c.pb.gz").stdout.scan(/^Traced: process (\d+): [\d,]+ calls, /)
      expect(numbers.uniq.size).to eq(3)
      rows = Rperf.load(path_to("c.pb.gz")).top(value: "calls").select { |row| row[:name] == "Object#leaf" }
      expect(rows.sum { |row| row[:self] }).to eq(6)
    end

    it "has no warnings of its own code" do
      outcome = rperf("trace", "--calls", "all", ruby, "-w", "-e", "Object.new")
      expect(outcome.stderr).to match(/\Arperf: wrote rperf.data .*\n\z/)
    end

    it "refuses what has no meaning" do
      expect(rperf("trace", "--clock", "sundial", ruby, "-e", "1").stderr)
        .to eq("rperf: --clock must be auto, monotonic or tick, not 'sundial'\n")
      expect(rperf("stat", "-m", "trace", ruby, "-e", "1").stderr)
        .to start_with("rperf: -m must be cpu or wall, not 'trace'")
      expect(rperf("trace", "--clock", "tick", "--spans", "1ms", ruby, "-e", "1").stderr)
        .to eq("rperf: --clock tick goes with --spans 10ms or more, not with --spans 1ms\n")
      expect(rperf("trace", "-f", "5", ruby, "-e", "1").status.exitstatus).to eq(2)
    end
  end

  describe "by variables" do
    it "traces the whole program" do
      env = { "RPERF_ENABLED" => "1", "RPERF_MODE" => "trace", "RPERF_CALLS" => "count", "RPERF_OUTPUT" => "v.pb.gz" }
      run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", "-rrperf", "-e", "def leaf = 1; 7.times { leaf }", env:)
      expect(calls_in(path_to("v.pb.gz"), "Object#leaf")).to eq(7)
    end
  end

  describe "in a program" do
    it "says once that calls stay slower, unless it is told not to" do
      program = "Rperf.trace(warn: false) { 1 }; 2.times { Rperf.trace { 1 } }"
      refused = "Rperf.start; (Rperf.trace { 1 } rescue Rperf.stop)"
      outcome = run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", "-rrperf", "-e", program)
      expect(outcome.stderr).to match(/\Arperf: Rperf.trace: calls in this process stay slower [^\n]+\n\z/)
      outcome = run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", "-rrperf", "-e", refused)
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    end

    it "has no thread of its own, whatever it traces; a session that samples has one" do
      counts = told(<<~RUBY)
        def leaf = 1
        def own_threads = Dir["/proc/self/task/*/comm"].count { |path| File.read(path).start_with?("rperf") }
        def during(**) = (Rperf.start(**); Rperf.label(part: "a") { own_threads }).tap { Rperf.stop }
        puts({ sampling: during(mode: :wall), tracing: during(mode: :trace),
               chosen: during(mode: :trace, only: ["Object#leaf"]), none: own_threads }.to_json)
      RUBY
      expect(counts).to eq(sampling: 1, tracing: 0, chosen: 0, none: 0)
    end

    it "begins and ends wherever the stack is" do
      counts = told(<<~RUBY)
        def leaf = 1
        def deep(n, &) = n.zero? ? yield : (deep(n - 1, &); leaf)
        def starts = deep(20) { Rperf.start(mode: :trace); leaf }
        starts
        def stops = deep(3) { $profile = Rperf.stop unless $profile }
        stops
        puts $profile.top(value: "calls", sort: :total).to_h { |row| [row[:name], row[:self]] }.to_json
      RUBY
      expect(counts.values_at(:"Object#leaf", :"Object#deep", :"Object#starts", :"Object#stops")).to eq([21, 4, 0, 1])
    end

    # With RPERF_LONG=1 (bin/test --long) the size that the field's benchmarks have.
    it "counts each call of a method and of an operator, and adds up to the thread's life" do
      size, calls = Commands::LONG ? ["12, 6, 0", 12_604_861] : ["8, 4, 0", 12_605]
      rows, sums, life = told(<<~RUBY, limit: 300).values_at(:rows, :sums, :life)
        #{tarai}
        profile = Rperf.trace(calls: :all, warn: false) { tarai(#{size}) }
        sums = ["wall", "overhead"].map { |value| profile.top(by: :thread, value:).map { |row| row[:self] } }
        rows = profile.top(value: "calls").to_h { |row| [row[:name], row[:self]] }
        puts({ rows:, sums:, life: profile[:duration_ns] }.to_json)
      RUBY
      expect(rows.values_at(:"Object#tarai", :"Integer#<=")).to eq([calls, calls])
      expect(sums).to match([[Integer], [Integer]])
      expect(sums.flatten.sum).to be_within(1).of(life)
    end

    it "times calls by a clock that a thread notes", alone: true do
      result = told(<<~RUBY)
        def leaf = 1
        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        def long(text, stop) = (text.count("b") while now < stop)
        def short = 200_000.times { leaf }
        text = "ab" * 1_000_000
        Rperf.start(mode: :trace, clock: :tick)
        long(text, now + 0.25)
        short
        thread = Thread.new { 40.times { 5_000.times { leaf } and Thread.pass } }
        20.times { sleep 0.003 and Rperf.snapshot }
        thread.join
        profile = Rperf.stop
        rows = ->(value) { profile.top(value:, sort: :total).to_h { |row| [row[:name], row[:total]] } }
        sum = ->(value) { profile.top(by: :thread, value:).to_h { |row| [row[:name], row[:self]] } }
        lives = sum["wall"].merge(sum["overhead"]) { |_, own, cost| own + cost }.values
        puts({ leaf: rows["calls"]["Object#leaf"], long: rows["wall"]["Object#long"], life: profile[:duration_ns],
               lives: }.to_json)
      RUBY
      expect(result[:leaf]).to eq(400_000)
      expect(result[:long]).to be_between(100_000_000, result[:life])
      expect(result[:lives].max).to be_within(1).of(result[:life])
    end

    it "takes its cost out of the times of a broad tree by that clock, too", alone: true do
      costs = told(<<~'RUBY')
        def leaf = 1
        list = ->(name, *rest) { (0..4).map { |i| "#{name}#{i}#{rest.join}" }.join(";") }
        5.times { |i| eval("def b#{i} = (#{list.("c")})\ndef c#{i} = 20.times { leaf }") }
        40.times { |i| eval("def a#{i} = (#{list.("b")})") }
        all = eval("-> { 5.times { #{(0...40).map { |i| "a#{i}" }.join(";")} } }")
        costs = [:auto, :tick].map do |clock|
          profile = Rperf.trace(clock:, warn: false, &all)
          profile.top(value: "overhead", limit: 1000).sum { |row| row[:self] }
        end
        puts costs.to_json
      RUBY
      expect(costs.last).to be > 0.3 * costs.first
    end

    it "counts the calls of threads that share native ones" do
      calls = told(<<~RUBY, env: { "RUBY_MN_THREADS" => "1" })
        def leaf = 1
        profile = Rperf.trace(warn: false) do
          Array.new(8) { Thread.new { 50.times { leaf; Thread.pass; sleep 0.0001 } } }.each(&:join)
        end
        puts profile.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self]
      RUBY
      expect(calls).to eq(400)
    end

    it "adds up to each thread's life" do
      sums, lives = told(<<~RUBY).values_at(:sums, :lives)
        def work = 2_000.times { |i| [i].map { |it| it + 1 } }
        threads = nil
        profile = Rperf.trace(warn: false) do
          threads = Array.new(3) { Thread.new { work; sleep 0.02; work } }
          threads.each(&:join)
          sleep 0.05
        end
        sum = ->(value) { profile.top(by: :thread, value:).to_h { |row| [row[:name], row[:self]] } }
        wall, overhead = sum["wall"], sum["overhead"]
        lives = profile[:duration_ns]
        puts({ sums: wall.to_h { |name, ns| [name, ns + overhead.fetch(name, 0)] }, lives: }.to_json)
      RUBY
      expect(sums.size).to be_between(4, 5)
      expect(sums.values.max).to be_within(1).of(lives)
      expect(sums.values.sort.drop(1)).to all(be > 20_000_000)
    end

    it "tells running from being blocked, waiting for the GVL and collecting garbage, by method" do
      all, waiting, sleeping, collecting = told(<<~RUBY)
        STARTED = Thread::Queue.new
        def spin
          STARTED << 1
          Thread.pass until STARTED.size == 2
          200.times { 1000.times { |i| i * i } and Thread.pass }
        end
        def doze = sleep(0.1)
        def collect = 3.times { GC.start }
        profile = Rperf.trace(warn: false) do
          Array.new(2) { Thread.new { spin } }.each(&:join)
          doze
          collect
        end
        states = ->(focus) { profile.top(by: :state, value: "wall", focus:).to_h { |row| [row[:name], row[:self]] } }
        puts [nil, "Object#spin", "Object#doze", "Object#collect"].map(&states).to_json
      RUBY
      expect(all.keys).to include(:running, :"GVL blocked", :"GVL wait", :"GC marking", :"GC sweeping")
      expect(waiting.fetch(:"GVL wait")).to be > 1_000_000
      expect(sleeping.fetch(:"GVL blocked")).to be_between(99_000_000, 10_000_000_000)
      expect(collecting.fetch(:"GC marking")).to be > 0.5 * all.fetch(:"GC marking")
    end

    it "has CPU time, whatever else the machine does", alone: true do
      measured, used, sleeping = told(<<~RUBY)
        def leaf = 1
        def work = 200_000.times { leaf }
        def doze = sleep(0.1)
        used = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) }
        took = nil
        profile = Rperf.trace(measure: :cpu, warn: false) { start = used[]; work; doze; took = used[] - start }
        sum = ->(value, focus = nil) { profile.top(by: :thread, value:, focus:).sum { |row| row[:self] } }
        puts [sum["cpu"] + sum["overhead"], took, sum["cpu", "Object#doze"]].to_json
      RUBY
      expect(measured).to be_within(0.3 * used).of(used)
      expect(sleeping).to be < 20_000_000
    end

    it "has no profile while it measures what tracing costs" do
      seen, calls = told(<<~RUBY)
        def leaf = 1
        native = Rperf.const_get(:Native)
        seen = []
        point = TracePoint.new(:call) do |it|
          seen << native.snapshot(false) << native.stop_into([]) if it.method_id == :method_12
        end
        point.enable { Rperf.start(mode: :trace) }
        3.times { leaf }
        calls = Rperf.stop.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self]
        puts [seen.map(&:inspect), calls].to_json
      RUBY
      expect(seen.size).to be > 4
      expect(seen).to all(eq("nil"))
      expect(calls).to eq(3)
    end

    it "gives snapshots, and nothing twice" do
      counts = told(<<~RUBY)
        def leaf = 1
        Rperf.start(mode: :trace, calls: :count)
        3.times { leaf }
        first = Rperf.snapshot
        second = Rperf.snapshot(clear: true)
        2.times { leaf }
        third = Rperf.stop
        puts [first, second, third].map { |it|
          it.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self] }.to_json
      RUBY
      expect(counts).to eq([3, 3, 2])
    end

    it "has a Hash that says what it is" do
      hash = told("puts Rperf.trace(warn: false) { 1 }.slice(:mode, :duration_ns, :frequency).to_json")
      expect(hash).to match(mode: "trace", duration_ns: be > 0, frequency: nil)
    end

    it "is one session with sampling" do
      messages = told(<<~RUBY)
        errors = [[{ mode: :trace }, {}], [{}, { mode: :trace }]].map do |first, second|
          Rperf.start(**first)
          Rperf.start(**second)
        rescue Rperf::Error => e
          Rperf.stop
          e.message
        end
        puts errors.to_json
      RUBY
      expect(messages).to all(eq("profiling is running already; call Rperf.stop first"))
    end

    it "refuses settings of sampling" do
      given = [{ aggregate: false }, { capture: :safepoint }, { signal: false }, { lines: true }]
      messages = given.map do |settings|
        Rperf.start(mode: :trace, **settings)
      rescue ArgumentError => e
        e.message
      end
      expect(messages).to eq(["mode: :trace goes with aggregate: true, not with aggregate: false",
                              "capture: :safepoint can't be combined with mode: :trace: leave one of them out",
                              "signal: false can't be combined with mode: :trace: leave one of them out",
                              "lines: true can't be combined with mode: :trace: leave one of them out"])
      expect do
        Rperf.start(calls: :all)
      end.to raise_error(ArgumentError, /\Acalls: :all goes with mode: :trace, not with /)
      expect { Rperf.trace }.to raise_error(ArgumentError, "Rperf.trace needs a block")
      expect { Rperf.trace(mode: :wall) { nil } }.to raise_error(ArgumentError, "unknown keyword: :mode")
    end

    it "counts the same under GC stress, and with methods that come and go" do
      count = told(<<~RUBY)
        def leaf = 1
        profile = Rperf.trace(warn: false) do
          GC.stress = true
          5.times { |i| Class.new { define_singleton_method(:made) { leaf } ; def m = leaf }.new.m }
          GC.stress = false
          300.times { |i| eval("def made_\#{i} = leaf"); send("made_\#{i}") }
          GC.compact if GC.respond_to?(:compact)
        end
        puts profile.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self]
      RUBY
      expect(count).to eq(305)
    end

    it "counts the same with a fork in the middle, in the parent and without a session in the child" do
      counts = told(<<~RUBY)
        def leaf = 1
        reader, writer = IO.pipe
        profile = Rperf.trace(warn: false) do
          leaf
          pid = fork { 5.times { leaf }; writer.write(Rperf.running?.inspect) }
          Process.wait(pid)
          leaf
        end
        writer.close
        puts [profile.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self], reader.read].to_json
      RUBY
      expect(counts).to eq([2, "false"])
    end

    it "says of other Ractors that they are not traced" do
      outcome = run(ruby, "-W:no-experimental", "-I#{File.join(Commands::ROOT, "lib")}", "-rrperf", "-e", <<~RUBY)
        def leaf = 1
        profile = Rperf.trace(warn: false) do
          ractor = Ractor.new { 10.times { leaf } }
          ractor.respond_to?(:value) ? ractor.value : ractor.take
          leaf
        end
        Rperf.save("r.txt", profile)
        print profile.top(value: "calls").find { |row| row[:name] == "Object#leaf" }[:self]
      RUBY
      expect(outcome.stdout).to eq("1")
      expect(File.read(path_to("r.txt"))).to include("Traced: other Ractors than the main one were not traced\n")
    end
  end

  it "names methods of C without the program's to_s" do
    output = told(<<~RUBY)
      class Thing
        attr_reader :value
        def self.to_s = (print("!"); super)
      end
      profile = Rperf.trace(calls: :all, warn: false) { Thing.new.value; Comparable.instance_methods }
      puts profile.top(value: "calls", limit: 100).map { |row| row[:name] }.to_json
    RUBY
    expect(output).to include("Thing#value", "Module#instance_methods")
  end

  it "names methods as samples do" do
    program = <<~RUBY
      class Thing
        def self.spin = (limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.3
                         [1].each { work } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit)
        def self.work = 200.times { |i| made(i) }
        define_singleton_method(:made) { |i| Array.new(3, i).sort_by { |it| -it } }
      end
      main = -> { Thing.spin }
      names = [{ mode: :wall }, { mode: :trace }].map do |settings|
        Rperf.start(**settings) { main.call }.top(sort: :total, value: "wall").map { |row| [row[:path], row[:name]] }
      end
      puts names.to_json
    RUBY
    sampled, traced = told(program).map { |names| names.reject { |path, _| path.match?(/rperf|<GVL>|<GC>|<C /) } }
    expect(sampled.size).to be > 4
    expect(sampled - traced).to eq([])
  end

  it "leaves the same counts under a compiler, and refuses ZJIT" do
    flags = Compilers::FLAGS
    program = "#{tarai}puts Rperf.trace(warn: false) { tarai(8, 4, 0) }.top(value: 'calls').first[:self]"
    expect(told(program, flags["YJIT"])).to eq(12_605) if flags["YJIT"]
    zjit = flags["ZJIT"]
    expect { told(program, zjit) }.to raise_error(/calls can't be traced under ZJIT/) if zjit
  end
end
