# frozen_string_literal: true

# Requests and jobs that a session judges as they end (measure: :requests), and `rperf why`.
RSpec.describe "Requests by their class", vm: true do
  head = <<~RUBY
    require "rperf/rack"
    require "rperf/sidekiq"

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def compute(ms)
      deadline = now + (ms / 1000.0)
      nil while now < deadline
    end

    MIDDLEWARE = Rperf::RackMiddleware.new(->(env) { env["app"].call; [200, {}, []] })
    def get(path, middleware = MIDDLEWARE, &app)
      middleware.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "app" => app })
    end
    def job(name, &) = Rperf::SidekiqMiddleware.new.call(nil, { "class" => name }, "default", &)
    # So many that are quick, and then it is known how long they usually take.
    def learn(path, count = 120, &app) = count.times { get(path) { app&.call } }

    def start(**, &) = Rperf.start(mode: :wall, frequency: 1000, measure: :requests, **, &)

    # The time by class of what has this label.
    def classes(profile, tag = "endpoint=.")
      rows = profile.filter(tagfocus: tag).top(by: "label:%latency", idle: true, limit: nil)
      rows.to_h { |row| [row[:name], row[:self]] }
    end
  RUBY

  define_method(:told_of) { |program, *options, **run| told("#{head}\n#{program}", *options, **run) }

  it "gives all samples of a request one class, and those outside of requests none" do
    classes, whole, outside = told_of(<<~RUBY)
      profile = start do
        learn("/orders") { compute(0.2) }
        get("/orders") { 3.times { compute(10); sleep(0.02) } }
        get("/new") { compute(20) }
        compute(20)
      end
      whole = profile.filter(tagfocus: "endpoint=.").top(by: :state, idle: true, limit: nil).sum { |row| row[:self] }
      outside = profile.filter(tagignore: "endpoint=.").top(by: "label:%latency", idle: true, limit: nil)
      puts [classes(profile), whole, outside.map { |row| row[:name] }].to_json
    RUBY
    expect(classes.keys - %w[first fast typical slow tail]).to be_empty
    expect(classes.values.sum).to eq(whole)
    expect(classes["tail"]).to be > 60_000_000
    expect(classes["first"]).to be > 15_000_000
    expect(outside).to eq(["(no %latency)"])
  end

  it "tells requests that go on as open, and in the end by their class" do
    before, cleared, after, ended = told_of(<<~RUBY)
      Rperf.start(mode: :wall, frequency: 1000, measure: :requests)
      learn("/orders")
      seen = {}
      get("/orders") do
        compute(30)
        seen[:before] = classes(Rperf.snapshot)
        seen[:cleared] = classes(Rperf.snapshot(clear: true))
        compute(30)
        seen[:after] = classes(Rperf.snapshot)
      end
      puts [*seen.values_at(:before, :cleared, :after), classes(Rperf.stop)].to_json
    RUBY
    expect(before["open"]).to be > 20_000_000
    expect(cleared["open"]).to be > 20_000_000
    expect(after.keys).to eq(["open"])
    expect(after["open"]).to be > 20_000_000
    expect(ended.keys).to eq(["tail"])
    expect(ended["tail"]).to be >= after["open"]
  end

  it "keeps requests apart that take turns on one thread, and in one another" do
    interleaved, nested, twice = told_of(<<~RUBY)
      profile = start do
        learn("/quick")
        learn("/long")
        fibers = %w[/quick /long].map do |path|
          Fiber.new { get(path) { (path == "/long" ? 8 : 1).times { compute(5); Fiber.yield } } }
        end
        fibers.each(&:resume) while fibers.reject! { |fiber| !fiber.alive? } || fibers.any?
        get("/orders") { compute(10); job("MailJob") { compute(20) }; compute(10) }
        again = Rperf::RackMiddleware.new(->(env) { MIDDLEWARE.call(env) })
        get("/twice", again) { compute(10) }
      end
      Rperf.save("judged.pb.gz", profile)
      puts [[classes(profile, "endpoint=GET /quick"), classes(profile, "endpoint=GET /long")],
            [classes(profile, "endpoint=GET /orders"), classes(profile, "job=MailJob")],
            classes(profile, "endpoint=GET /twice")].to_json
    RUBY
    quick, long = interleaved
    expect(long["tail"]).to be > 30_000_000
    # The job is part of the request.
    expect([*nested, twice].map(&:keys)).to all(eq(["first"]))
    expect(nested.last["first"]).to be > 10_000_000
    all = JSON.parse(rperf("why", "--json", path_to("judged.pb.gz")).stdout)["endpoints"].to_h { |it| [it["name"], it] }
    counts = all.transform_values { |it| it["requests"] }
    expect(counts).to eq("GET /quick" => 121, "GET /long" => 121, "GET /orders" => 1, "GET /twice" => 1)
    # What came between two ticks may be either's, and ticks come late on a busy machine.
    expect(nested.first["first"]).to be_between(nested.last["first"], all["GET /orders"]["max_ns"] + 300_000_000)
    expect(quick.fetch("tail", 0)).to be < all["GET /long"]["max_ns"] / 2
  end

  it "judges requests that are interrupted, and leaves none behind in a fork or a later session" do
    interrupted, forked, later = told_of(<<~RUBY)
      require "timeout"
      Rperf.start(mode: :wall, frequency: 1000, measure: :requests)
      learn("/orders")
      begin
        Timeout.timeout(0.03) { get("/orders") { compute(1000) } }
      rescue Timeout::Error
        nil
      end
      reader, writer = IO.pipe
      get("/forks") do
        child = fork do
          rows = start { compute(30) }.top(by: "label:%latency", idle: true, limit: nil)
          writer.write(rows.map { |row| row[:name] }.to_json)
          exit!(0)
        end
        Process.wait(child)
      end
      writer.close
      profile = nil
      get("/stops") { compute(5); profile = Rperf.stop; Rperf.start(mode: :wall, measure: :requests); compute(20) }
      later = Rperf.stop
      puts [classes(profile, "endpoint=GET /orders"), reader.read, classes(later)].to_json
    RUBY
    expect(interrupted["tail"]).to be > 15_000_000
    expect(JSON.parse(forked)).to eq(["(no %latency)"])
    expect(later).to eq({})
  end

  it "makes no class and no request when it is off" do
    names = told_of(<<~RUBY)
      profile = Rperf.start(mode: :wall) { learn("/orders"); get("/orders") { compute(20) } }
      Rperf.save("plain.pb.gz", profile)
      puts classes(profile).keys.to_json
    RUBY
    # Where no tick finds a request, there is nothing of one.
    expect(names - ["(no %latency)"]).to be_empty
    outcome = rperf("why", path_to("plain.pb.gz"))
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
    expect(outcome.stderr.lines.size).to eq(1)
    expect(outcome.stderr).to include("--measure requests,blame")
  end

  it "is refused where nothing waits, and where samples are kept one by one" do
    expect { Rperf.start(mode: :cpu, measure: :requests) }.to raise_error(ArgumentError, /mode/)
    expect { Rperf.start(mode: :wall, measure: :requests, aggregate: false) }.to raise_error(ArgumentError, /aggregate/)
  end

  # 2,700 requests at three endpoints, one in a hundred of which is slow.
  describe "of a server", alone: true do
    before { run_server }

    def run_server
      told(<<~RUBY, "-W0")
        #{File.read(File.join(__dir__, "../fixtures/slow_requests.rb"))}
      RUBY
    end

    def why(*arguments)
      outcome = rperf("why", path_to("slow.pb.gz"), *arguments)
      raise outcome.stderr unless outcome.status.success?

      outcome.stdout
    end

    def answer(endpoint) = JSON.parse(why(endpoint, "--json"))

    it "finds the slow ones, their method, and who had the GVL" do
      orders, cart = %w[/orders /cart].map { |path| answer("GET #{path}") }
      [orders, cart].each do |answer|
        # Those that are slow, and few of the others; machines that are busy are slow at times.
        expect(answer["classes"]["tail"]).to be_between(8, 0.08 * 2_600)
      end
      slept = orders["sites"]["blocked_ns"].first
      expect(slept["app"]["name"]).to eq("Shop#slow_query")
      expect(slept["method"]["name"]).to eq("Kernel#sleep")
      # Of the 27 that sleep 60 ms all but one of the first hundred, and on a busy machine those that others outdo,
      # are the tail.
      expect(slept["per_request_ns"]["tail"] * orders["classes"]["tail"]).to be > 0.6 * 26 * 60_000_000
      expect(cart["means"]["gvl_wait_ns"]["difference"]).to be > 5_000_000
      expect(cart["holders"].first["name"]).to eq("job=ExportJob")
      expect(cart["holders"].first["app"]["name"]).to eq("Hog#spin")
      expect(why("orders")).to match(/\+\d+\.\d ms  blocked \(Kernel#sleep, in Shop#slow_query  .*:\d+\)$/)
      expect(why("cart")).to match(/GVL wait \(had by job=ExportJob \d+ %: .*Hog#spin/)
      expect(why.lines.grep(/ GET /).first).to include("GET /")
      its_json_is_documented(orders)
      slow_against_typical
      one_endpoint_of_several
      states_of_blame
      no_count_of_samples
    end

    # The fields that docs/guide/json.md has, in the order of its tables.
    def its_json_is_documented(endpoint)
      page = File.read(File.join(Commands::ROOT, "docs/guide/json.md"))[/^## rperf why --json$.*/m]
      tables = page.scan(/(?:^\|.*\n)+/).map do |table|
        table.lines.drop(2).flat_map { |row| row[/\A\| ([^|]+) \|/, 1].scan(/`(\w+)`/).flatten }
      end
      all = JSON.parse(why("--json"))
      of_one = tables[1] | tables[2] | ["version"]
      expect([all, all["endpoints"].first, endpoint].map(&:keys)).to match([tables[0], tables[1], of_one].map do |keys|
        match_array(keys)
      end)
    end

    def slow_against_typical
      file = path_to("slow.pb.gz")
      outcome = rperf("diff", "--top", "-n", "3", "--tagfocus", "endpoint=GET /orders", "--normalize", "requests",
                      "--base-tagfocus", "%latency=typical", "--target-tagfocus", "%latency=tail", file, file)
      expect(outcome.status).to be_success, outcome.stderr
      expect(outcome.stdout).to match(/slower  (\[GVL blocked\]|Kernel#sleep)/)
      expect(outcome.stdout).to match(/^Type: wall, per request$.*^Base: +[\d.]+ ms a request, [\d,]+ requests, /m)
      tail_is_told_per_request(outcome.stdout)
      same_in_ruby(file)
    end

    def same_in_ruby(file)
      outcome = rperf("diff", "--format", "json", "--tagfocus", "endpoint=GET /orders", "--normalize", "requests",
                      "--base-tagfocus", "%latency=typical", "--target-tagfocus", "%latency=tail", file, file)
      typical, tail = %w[typical tail].map do |name|
        Rperf.load(file).filter(tagfocus: ["endpoint=GET /orders", "%latency=#{name}"])
      end
      told = Rperf.diff(typical, tail, normalize: :requests)
      expect(told[:requests][:target]).to be_between(8, 0.08 * 2_600)
      expect(told.except(:idle)).to eq(JSON.parse(outcome.stdout, symbolize_names: true).except(:idle))
    end

    # Slow ones sleep for 60 ms, and no head has what all of them take together.
    def tail_is_told_per_request(text)
      tail = text[/^Target: +([\d.,]+) ms a request/, 1].delete(",").to_f
      orders = answer("GET /orders")
      all = orders["means"].values.sum { |it| it["tail"] } / 1e6
      expect(tail).to be_between(0.5 * all, 1.5 * all)
    end

    def one_endpoint_of_several
      expect(answer("^GET /ord")["name"]).to eq("GET /orders")
      refused = ["GET /", "/ordres", "^GET ["].map do |wanted|
        outcome = rperf("why", path_to("slow.pb.gz"), wanted)
        [outcome.status.exitstatus, outcome.stderr]
      end
      several = "rperf: 'GET /' is a part of 3 names: 'GET /cart', 'GET /about', 'GET /orders'\n"
      unknown = %r{\Arperf: no request is of '/ordres'.*'rperf why FILE' lists all\)\n\z}
      wrong = /\Arperf: no request is of '\^GET \[', and it is no valid regular expression: unclosed .*\n\z/
      expect(refused).to match([[2, several], [2, unknown], [2, wrong]])
    end

    # What nobody had the GVL for is no time in which something ran; all of it together is all blame.
    def states_of_blame
      outcome = rperf("report", "--blame", "--idle", "--format", "json", path_to("slow.pb.gz"))
      blame = JSON.parse(outcome.stdout)
      expect(blame["states"].values.sum).to eq(blame["total"])
      expect(blame["states"]["GVL hand-over"]).to be_positive
      shown = rperf("report", "--blame", "--idle", "--by", "state", "--top", path_to("slow.pb.gz")).stdout
      expect(shown).to match(/ GVL hand-over$/)
    end

    def no_count_of_samples
      of = lambda do |value|
        rperf("report", "--top", "--value", value, "--tagfocus", "endpoint=GET /cart", "--focus", "Hog#spin",
              path_to("slow.pb.gz")).stdout.lines.first
      end
      expect(of["gvl_waited_for"]).to match(/\AType: gvl_waited_for, .* are left, duration/)
      expect(of["wall"]).to match(/ samples?, duration/)
    end
  end
end
