# frozen_string_literal: true

RSpec.describe "Rperf.op", vm: true do
  include Commands

  # What the code says as JSON after a session that measures ops.
  def told_of(code, settings: "mode: :wall, frequency: 1000, measure: :ops", options: [])
    program = <<~RUBY
      require "json"
      def query(id, seconds = 0.002) = Rperf.op("SELECT * FROM items WHERE id = \#{id}", kind: :sql) { sleep(seconds) }
      Rperf.start(#{settings})
      #{code}
    RUBY
    outcome = run(ruby, *options, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program)
    expect(outcome.stderr).to eq("")
    JSON.parse(outcome.stdout)
  end

  let(:item) { "[SQL] SELECT * FROM items WHERE id = ?" }

  def totals(top) = top.to_h { |row| [row["name"], row["total"]] }

  ["--disable-yjit", *("--yjit" if RbConfig::CONFIG["YJIT_SUPPORT"] != "no")].each do |option|
    it "has the exact sums of all calls, by state, and is the leaf of samples, with #{option}" do
      ops, top = told_of(<<~RUBY, options: [option])
        20.times { |id| query(id, #{0.003 * Commands::SLOWNESS}) }
        Rperf.op("count", kind: "mine") { i = 0; i += 1 while i < 3_000_000 }
        profile = Rperf.stop
        puts [profile.ops, profile.top(sort: :total, limit: nil)].to_json
      RUBY
      found = ops["ops"].to_h { |it| [it["name"], it] }
      expect(found.keys).to contain_exactly(item, "[mine] count")
      queries, count = found.values_at(item, "[mine] count")
      expect([queries["calls"], count["calls"]]).to eq([20, 1])
      expect(queries["blocked_ns"]).to be_between(60_000_000 * Commands::SLOWNESS, queries["wall_ns"])
      expect(queries["blocked_p50_ns"]).to be >= 2_800_000 * Commands::SLOWNESS
      expect(count["running_ns"]).to be > count["blocked_ns"]
      found.each_value do |it|
        states = it.values_at("running_ns", "gvl_wait_ns", "blocked_ns", "gc_ns", "suspended_ns")
        expect(states.sum).to eq(it["wall_ns"])
      end
      sampled = totals(top)
      expect(sampled.fetch(item)).to be_within(0.3 * queries["wall_ns"]).of(queries["wall_ns"])
      expect(sampled.fetch("[mine] count")).to be_within((0.3 * count["wall_ns"]) + 10_000_000).of(count["wall_ns"])
    end
  end

  # A program must not fail as it is measured alone.
  it "takes names and kinds or refuses them as without a session" do
    program = <<~RUBY
      require "json"
      Rperf.start(mode: :wall, measure: :ops) if ARGV == ["measured"]
      calls = [[:checkout, :op], ["checkout", "grpc"], [nil, :op], [5, :op], ["x", nil], ["x", :""], ["x", 5]]
      answers = calls.map do |name, kind|
        Rperf.op(name, kind:) { "run" }
      rescue => e
        [e.class, e.message]
      end
      puts [answers, Rperf.stop&.ops&.fetch(:ops)&.map { it[:name] }&.sort].to_json
    RUBY
    (within, ops), (without,) = %w[measured no].map do |argument|
      JSON.parse(run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program, argument).stdout)
    end
    expect(within).to eq(without)
    expect(ops).to eq(["[grpc] checkout", "[op] checkout"])
    name = "name: must be a String or a Symbol"
    kind = "kind: must be a Symbol or a String, not an empty one"
    refusals = ["#{name}, not nil", "#{name}, not 5", "#{kind}, not nil", "#{kind}, not :\"\"", "#{kind}, not 5"]
    expect(within).to eq(["run", "run", *refusals.map { ["ArgumentError", it] }])
  end

  it "isn't counted in a handler of a signal" do
    answer = told(<<~RUBY)
      trap("USR1") { $told = (Rperf.op_calls { Rperf.op("x") { nil } } rescue [$!.class, $!.message]) }
      Process.kill(:USR1, $$)
      sleep 0.01 until $told
      puts $told.to_json
    RUBY
    expect(answer).to eq(["Rperf::Error", "ops can't be counted in a handler of a signal"])
  end

  it "has rows in tables, and leaves its time to its caller where it is hidden" do
    told_of(<<~RUBY, settings: 'mode: :wall, frequency: 1000, measure: :ops, output: "app.pb.gz"')
      10.times { |id| query(id, 0.01) }
      sleep 0.05
      Rperf.stop
      puts 1
    RUBY
    profile = Rperf.load(path_to("app.pb.gz"))
    rows = profile.top(by: :op).to_h { |row| row.values_at(:name, :self) }
    expect(rows.keys).to contain_exactly(item, "(no op)")
    expect(rows.values.sum).to eq(profile.totals[:total])
    named = profile.top(sort: :total).to_h { |row| row.values_at(:name, :total) }
    expect(rows[item]).to eq(named[item])
    hidden = profile.filter(hide_ops: true).top(sort: :total).to_h { |row| row.values_at(:name, :total) }
    expect(hidden).to eq(named.except(item))
    expect(hidden["[GVL blocked]"]).to be > rows[item] / 2
    table = rperf("report", "--top", "--by", "op", "--idle", path_to("app.pb.gz"))
    expect([table.status.exitstatus, table.stderr]).to eq([0, ""])
    expect(table.stdout.lines.last(2)).to contain_exactly(/#{Regexp.escape(item)}$/, /\(no op\)$/)
    tree = rperf("report", "--tree", "--hide-ops", path_to("app.pb.gz")).stdout
    expect(tree).to match(/Object#query.*(\n.*){0,4}Kernel#sleep.*\n.*\[GVL blocked\]/)
    expect(tree).not_to include("[SQL]")
  end

  it "counts ops inside of others in both, but their states once" do
    ops = told_of(<<~RUBY)
      Rperf.op("outer") { sleep(0.01); 3.times { query(1, 0.05) } }
      puts Rperf.stop.ops.to_json
    RUBY
    outer, query = ["[op] outer", item].map { |name| ops["ops"].find { |it| it["name"] == name } }
    expect(outer["wall_ns"]).to be > query["wall_ns"] + 9_000_000
    expect(outer["blocked_ns"]).to be < query["blocked_ns"]
    states = ops["total"].values_at("running_ns", "gvl_wait_ns", "blocked_ns", "gc_ns", "suspended_ns")
    expect(states.sum).to eq(outer["wall_ns"])
    expect(ops["total"]["wall_ns"]).to eq(outer["wall_ns"])
  end

  it "ends however its block ends, and gives the block's value" do
    told = told_of(<<~RUBY)
      require "timeout"
      value = Rperf.op("a") { 7 }
      begin
        Rperf.op("a") { raise "an error" }
      rescue => error
      end
      thrown = catch(:done) { Rperf.op("a") { throw :done, 8 } }
      timed = (Timeout.timeout(0.05) { Rperf.op("a") { sleep } } rescue $!.class.name)
      thread = Thread.new { Rperf.op("a") { sleep } }
      Thread.pass until thread.stop?
      thread.kill.join
      Rperf.op("b") {}
      ops = Rperf.stop.ops
      puts [value, error.message, thrown, timed, ops[:ops].to_h { [_1[:name], _1[:calls]] }].to_json
    RUBY
    expect(told).to eq([7, "an error", 8, "Timeout::Error", { "[op] a" => 5, "[op] b" => 1 }])
  end

  it "belongs to its fiber: time in other fibers is suspended, and fibers made inside begin without it" do
    ops, top = told_of(<<~RUBY)
      fiber = Fiber.new { Rperf.op("in fiber") { Fiber.yield; sleep(0.01) } }
      fiber.resume
      sleep(0.05)
      fiber.resume
      Rperf.op("maker") { Fiber.new { sleep(0.05) }.resume }
      Rperf.op("lazy") { Enumerator.new { |out| sleep(0.03); out << 1 }.next }
      profile = Rperf.stop
      puts [profile.ops, profile.top(sort: :total, limit: nil)].to_json
    RUBY
    found = ops["ops"].to_h { |it| [it["name"], it] }
    expect(found["[op] in fiber"]["suspended_ns"]).to be >= 49_000_000
    expect(found["[op] in fiber"]["blocked_ns"]).to be_between(9_000_000, 45_000_000)
    expect(found["[op] maker"]["suspended_ns"]).to be >= 49_000_000
    sampled = totals(top)
    expect(sampled.fetch("[op] maker", 0)).to be < 30_000_000
    expect(sampled.fetch("[op] lazy", 0)).to be < 20_000_000
  end

  it "leaves labels as they are: those put on inside of it stay, those of a block go" do
    told = told_of(<<~RUBY)
      all = []
      Rperf.label(a: 1) do
        Rperf.op("x") do
          Rperf.label(b: 2) { all << Rperf.labels; Rperf.op("y") { all << Rperf.labels } }
          Rperf.label(c: 3)
          Fiber.new { all << Rperf.labels }.resume
        end
        all << Rperf.labels
        Fiber.new { all << Rperf.labels }.resume
      end
      all << Rperf.labels
      Rperf.stop
      puts all.to_json
    RUBY
    inside = { "a" => 1, "b" => 2 }
    after = { "a" => 1, "c" => 3 }
    expect(told).to eq([inside, inside, after, after, after, {}])
  end

  it "does nothing but run its block without a session that measures ops, and across the ends of sessions" do
    told = told_of(<<~RUBY, settings: "mode: :wall")
      values = [Rperf.op("a") { 1 }]
      without = Rperf.stop.ops
      values << Rperf.op("b") { 2 }
      values << Rperf.op("c") { Rperf.start(mode: :cpu, measure: :ops); Rperf.op("d") { 3 } }
      first = Rperf.op("e") { Rperf.stop }
      Rperf.start(mode: :wall, measure: :ops)
      Rperf.op("f") { Rperf.stop; Rperf.start(mode: :wall, measure: :ops); 4 }
      Rperf.op("g") {}
      puts [values, without, first.ops[:ops].map { _1[:name] }, Rperf.stop.ops[:ops].map { _1[:name] }].to_json
    RUBY
    expect(told).to eq([[1, 2, 3], nil, ["[op] d"], ["[op] g"]])
  end

  it "is told by process: a forked child goes on without the parent's calls" do
    told = told_of(<<~RUBY)
      child = nil
      Rperf.op("a") do
        reader, writer = IO.pipe
        pid = fork { writer << Rperf.op("in child") { 5 }.to_s; writer.close; exit!(0) }
        writer.close
        child = reader.read
        Process.wait(pid)
      end
      puts [child, Rperf.stop.ops[:ops].map { [_1[:name], _1[:calls]] }].to_json
    RUBY
    expect(told).to eq(["5", [["[op] a", 1]]])
  end

  it "refuses what is no name, and then its block doesn't run" do
    told = told_of(<<~RUBY)
      errors = [nil, 5, BasicObject.new].map { |name| (Rperf.op(name) { abort } rescue $!.class.name) }
      Rperf.op("odd \\xFF name\\nof two lines") {}
      puts [errors, Rperf.stop.ops[:ops].map { _1[:name] }].to_json
    RUBY
    expect(told).to eq([["ArgumentError"] * 3, ["[op] odd \u{FFFD} name of two lines"]])
  end

  it "isn't put back with labels when it has ended within them" do
    told = told_of(<<~RUBY)
      native = Rperf.const_get(:Native)
      native.start_op("op", "a")
      Rperf.label(x: 1) { native.finish_op("op") }
      Rperf.op("b") { sleep(0.02) }
      sleep(0.3)
      labels = Rperf.labels
      profile = Rperf.stop
      puts [labels, profile.ops[:ops].map { _1[:name] }.sort, profile.top(sort: :total, limit: nil).map(&:to_h)].to_json
    RUBY
    labels, names, top = told
    expect([labels, names]).to eq([{}, ["[op] a", "[op] b"]])
    expect(totals(top).fetch("[op] a", 0)).to be < 150_000_000
  end

  it "has the wall time of the outermost call only where it calls itself" do
    ops = told_of(<<~RUBY)
      def walk(depth) = Rperf.op("walk") { sleep(0.002) and depth.positive? && Rperf.op("step") { walk(depth - 1) } }
      walk(9)
      puts Rperf.stop.ops.to_json
    RUBY
    walk, step = ["[op] walk", "[op] step"].map { |name| ops["ops"].find { |it| it["name"] == name } }
    expect([walk, step].map { |it| it["calls"] }).to eq([10, 9])
    expect(walk["wall_ns"]).to eq(ops["total"]["wall_ns"])
    expect(step["wall_ns"]).to be < walk["wall_ns"]
  end

  it "isn't measured in a trace, which says so" do
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "Rperf.start(mode: :trace, measure: :ops)")
    expect(outcome.stderr).to match(/measure.*mode/)
    expect(outcome.status).not_to be_success
  end

  it "is known by the request that calls it again and again" do
    ops = told_of(<<~RUBY, settings: "mode: :wall, frequency: 1000, measure: %i[ops requests]")
      require "rperf/rack"
      app = Rperf::RackMiddleware.new(lambda { |env|
        (env["PATH_INFO"] == "/many" ? 8 : 1).times { |id| query(id, 0.001) }
        [200, {}, []]
      })
      20.times { |i| app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => i.even? ? "/many" : "/one") }
      puts Rperf.stop.ops.to_json
    RUBY
    repeat, *others = ops["repeats"]
    expect(others).to eq([])
    expect(repeat).to include("name" => item, "endpoint" => "GET /many", "calls" => 80, "requests" => 10,
                              "repeated" => 10, "endpoint_requests" => 10)
    expect(ops["ops"].sum { |it| it["calls"] }).to eq(90)
  end

  it "counts as outside of its request if it ends later, and leaves room for others" do
    ops = told_of(<<~RUBY, settings: "mode: :wall, frequency: 1000, measure: %i[ops requests]")
      require "rperf/rack"
      late = nil
      app = Rperf::RackMiddleware.new(lambda { |_|
        query(1, 0.001)
        late = Fiber.new { Rperf.op("late") { Fiber.yield } }
        late.resume
        [200, {}, []]
      })
      3.times do
        app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/")
        late.resume
      end
      puts Rperf.stop.ops.to_json
    RUBY
    calls = ops["ops"].to_h { |it| [it["name"], it.values_at("calls", "displaced_calls")] }
    expect(calls).to eq(item => [3, 0], "[op] late" => [3, 3])
    expect(ops["total"]["displaced_calls"]).to eq(3)
  end

  it "has its name in whatever encoding the program has it, and no values of SQL for that" do
    names = told_of(<<~'RUBY')
      Rperf.op("größer".encode("ISO-8859-1")) {}
      Rperf.op("größer".encode("UTF-16LE")) {}
      Rperf.op("größer") {}
      # The last byte of the first character is a backslash, of the second one a vertical bar.
      Rperf.op("SELECT '表', 'secret' FROM t WHERE name = 'ポ'".encode("Shift_JIS"), kind: :sql) {}
      Rperf.op("SELECT größe FROM t WHERE name = 'secret'".encode("UTF-16"), kind: :sql) {}
      Rperf.op("a\xffb".b) {}
      puts Rperf.stop.ops[:ops].to_h { [_1[:name], _1[:calls]] }.to_json
    RUBY
    expect(names).to eq("[op] größer" => 3, "[SQL] SELECT ?, ? FROM t WHERE name = ?" => 1,
                        "[SQL] SELECT größe FROM t WHERE name = ?" => 1, "[op] a\uFFFDb" => 1)
  end

  it "is told at the end of the session, too, if its request goes on" do
    ops = told_of(<<~RUBY, settings: "mode: :wall, frequency: 1000, measure: %i[ops requests]")
      require "rperf/rack"
      profile = nil
      app = Rperf::RackMiddleware.new(lambda { |_|
        6.times { |id| query(id, 0.001) }
        profile = Rperf.stop
        [200, {}, []]
      })
      app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/")
      puts profile.ops.to_json
    RUBY
    expect(ops["ops"].map { |it| it.values_at("name", "calls") }).to eq([[item, 6]])
    expect(ops["repeats"]).to eq([])
  end

  it "is repeated by endpoints that are known as others, or by a part of their name, only if they repeat it" do
    ops = told_of(<<~RUBY, settings: "mode: :wall, frequency: 1000, measure: %i[ops requests]")
      require "rperf/rack"
      app = Rperf::RackMiddleware.new(lambda { |env|
        env.fetch("times").times { Rperf.op("x") {} }
        [200, {}, []]
      }, label: -> { _1["PATH_INFO"] })
      call = ->(path, times) { app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path, "times" => times) }
      long = ["/a", "/b"].map { |path| path + ("x" * 400) }
      50.times { |number| call.(long[0], number.zero? ? 6 : 1) }
      50.times { call.(long[1], 6) }
      998.times { |number| call.(number.to_s, 1) }
      50.times { |number| call.("late", number.zero? ? 6 : 1) }
      puts Rperf.stop.ops.to_json
    RUBY
    expect(ops["repeats"].map { |it| it.values_at("endpoint", "endpoint_requests", "repeated") })
      .to eq([["/b#{"x" * 254}", 50, 50]])
  end

  it "leaves the values of SQL out however its kind is written, and whatever a Symbol's to_s is" do
    names = told_of(<<~RUBY)
      [:SQL, "Sql"].each { |kind| Rperf.op("SELECT 'secret'", kind:) {} }
      class Symbol
        def to_s = "odd"
      end
      Rperf.op("SELECT 'secret'", kind: :sql) {}
      class Symbol
        def to_s = name
      end
      puts Rperf.stop.ops[:ops].map { [_1[:name], _1[:calls]] }.to_json
    RUBY
    expect(names).to eq([["[SQL] SELECT ?", 3]])
  end
end
