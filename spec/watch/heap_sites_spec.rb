# frozen_string_literal: true

require_relative "../support/object_graphs"

# Programs that keep known amounts from known places, and what rperf heap says of these: bytes, ages, holders. Bounds
# are five standard deviations, if nothing else is said.
RSpec.describe "rperf heap with sites", vm: true, emulated: false, if: Gem::Platform.local.os == "linux" do
  include Ports

  let(:leaky) { <<~'RUBY' }
    require "objspace"
    Item = Struct.new(:number, :text)
    Plain = Class.new
    class Cart
      attr_reader :items
      def initialize = @items = Array.new(70)
    end
    class Shop
      CARTS = {}
      LATEST = []
      MOST = 2_000
      $closures = []
      $pushed = []
      $rounds = []

      # Keeps in a constant's Hash, in a thread's locals, in closures of a global; keeps nothing; keeps the latest.
      def site_a(n) = n.times { CARTS[CARTS.size] = Cart.new }
      def site_b(n) = n.times { |i| Thread.current[:kept] << Item.new(i, nil) }
      def site_c(n)
        kept = []
        n.times { kept << Plain.new }
        $closures << -> { kept.size }
      end
      def site_d(n) = n.times { Array.new(70) }
      def site_e(n)
        n.times { LATEST << Array.new(70); $pushed << now; LATEST.shift && $pushed.shift if LATEST.size > MOST }
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def run(rounds, sleep)
        rounds.times do
          $rounds << now
          Rperf.label(endpoint: "POST /a", user: "bananarama") { site_a(150) }
          site_c(2_000)
          site_d(2_000)
          site_e(100)
          sleep(sleep)
        end
      end
    end
  RUBY

  run = <<~'RUBY'
    shop = Shop.new
    Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
    began = shop.now
    worker = Thread.new do
      Thread.current.name = "worker"
      Thread.current[:kept] = []
      80.times { shop.site_b(1_500); sleep 0.01 }
      sleep
    end
    shop.run(80, 0.02)
    sleep 0.01 until worker[:kept].size == 120_000 && worker.stop?
    GC.compact if GC.respond_to?(:compact)
    size = ->(objects) { objects.sum { |it| ObjectSpace.memsize_of(it) } }
    File.write("truth", JSON.generate(
      a: size[Shop::CARTS.values.map(&:items)], carts: size[Shop::CARTS.values], b: size[worker[:kept]],
      c: $closures.sum { |it| size[it.binding.local_variable_get(:kept)] }, e: size[Shop::LATEST],
      began:, ended: shop.now, pushed: $pushed.first,
      quarters: [$rounds[20], $rounds[60]]
    ))
  RUBY

  def holding(code, rest: "sleep", **)
    write_file("shop.rb", leaky)
    program = <<~RUBY
      require "json"
      require "./shop"
      #{code}
      puts Rperf.listen
      sleep 0.01 until File.exist?("go")
      #{rest}
    RUBY
    listening(program, **) { |it| yield it.pid, it.lines.last }
  end

  def truth = JSON.parse(File.read(path_to("truth")))

  def answer_of(*arguments)
    options = arguments.any?(Integer) ? ["--force"] : []
    outcome = rperf("heap", "--json", *options, *arguments.map(&:to_s))
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    JSON.parse(outcome.stdout)
  end

  def page_of(*arguments) = rperf("heap", *arguments.map(&:to_s)).stdout.dup.force_encoding("UTF-8")

  def row(answer, method, class_name)
    rows = answer["sites"]["rows"].select do |it|
      it["class"] == class_name && it["made_in"]&.fetch("method")&.match?(/\b#{method}\z/)
    end
    expect(rows.size).to eq(1), -> { answer["sites"]["rows"].first(9).inspect }
    rows[0]
  end

  def held_by(row)
    path = row["held_by"][0]
    [path["holder"], *path["steps"].map { |class_name, name| "#{name} #{class_name}".strip }]
  end

  # An estimate from samples of objects with slots of so many bytes, which stand for 64 KB each: with a limit of what
  # they cost it may be more, on a busy machine.
  def near(bytes, each: 64 * 1024) = be_within(5 * Math.sqrt(bytes * each)).of(bytes)

  describe "of a program that leaks at known places" do
    [{}, { "RUBYOPT" => "--yjit" }].each do |env|
      it "tells what each has made that is still there, since when, and what holds it#{", with YJIT" if env.any?}" do
        skip "this Ruby has no YJIT" if env.any? && !defined?(RubyVM::YJIT)
        holding(run, env:) do |pid, socket|
          answer = answer_of(pid)
          a, b, c, e, carts = leaks(answer)
          expect_bytes(a:, b:, c:, e:, carts:)
          expect_no_garbage(answer)
          expect_holders(a:, b:, c:, e:)
          expect_ages(answer["sites"]["session_ns"], a, e)
          expect(a["endpoint"]).to eq("POST /a")
          expect([b, c, e].map { |it| it["endpoint"] }).to all(eq(""))
          line = leaky.lines.index { |it| it.include?("@items = ") } + 1
          expect(a["made_in"].values_at("path", "line")).to eq([File.realpath(path_to("shop.rb")), line])
          expect(ObjectGraphs.ask(socket, force: true).first.read.b).not_to include("bananarama")
        end
      end
    end

    def leaks(answer)
      [["Cart#initialize", "Array"], ["Shop#site_b", "Item"], ["Shop#site_c", "Plain"], ["Shop#site_e", "Array"],
       ["Shop#site_a", "Cart"]].map { |method, class_name| row(answer, method, class_name) }
    end

    def expect_bytes(e:, **leaks)
      leaks.each { |name, row| expect(row["bytes"]).to near(truth[name.to_s]) }
      leaks.each_value do |row|
        deviation = row["bytes"] / Math.sqrt(row["samples"])
        expect(row["deviation_bytes"]).to be_within(deviation / 10).of(deviation)
      end
      expect(e["bytes"]).to be <= truth["e"] + (5 * Math.sqrt(truth["e"] * 64 * 1024))
    end

    def expect_no_garbage(answer)
      # What nothing refers to is garbage, however young: at most what stacks hold.
      garbage = answer["sites"]["rows"].select { |it| it["made_in"]&.fetch("method")&.end_with?("Shop#site_d") }
      expect(garbage.sum { |it| it["bytes"] }).to be < 0.01 * 160_000 * 640
      sum = answer["sites"]["total"]["bytes"]
      expect(sum).to be_between(truth.values_at("a", "b", "c").sum * 0.7, answer["total"]["bytes"])
    end

    def expect_holders(a:, b:, c:, e:)
      expect(held_by(a)).to eq(["Shop::CARTS", "Hash", "Cart", "@items Array"])
      expect(held_by(b)).to eq(['Thread "worker"[:kept]', "Array", "Item"])
      expect(held_by(c)).to eq(["$closures", "Array", "Proc", "Array", "Plain"])
      expect(held_by(e)).to eq(["Shop::LATEST", "Array", "Array"])
      expect([a, b, c].map { |it| it["held_by"][0]["part"] }).to all(be > 0.95)
    end

    # Ages are those of the look, by which the session had run for so long.
    def expect_ages(elapsed, leak, cache)
      age = ->(moment) { elapsed - ((moment - truth["began"]) * 1e9) }
      # Half of it is older: a quarter of as many samples off is more than five standard deviations.
      expect(leak["median_age_ns"]).to be_between(*truth["quarters"].map(&age).reverse)
      # None in the cache is older than its turn.
      expect(cache["oldest_ns"]).to be <= age.call(truth["pushed"] - 0.01)
      expect(leak["oldest_ns"]).to be > cache["oldest_ns"]
      expect(age.call(truth["ended"])).to be_positive
    end

    it "prints a table first, of one class alone, keeps it, and says what has changed", :aggregate_failures do
      rest = "Shop.new.site_a(15_000); File.write('done', ''); sleep"
      holding("#{run}; GC.disable; shop.site_d(2_000)", rest:) do |pid, _|
        page = page_of(pid)
        expect(page.lines[2]).to eq("Retained by allocation site\n")
        expect(page).to match(/^estimated from \d+ samples \(1 of 64.0 KB of slots\) of a session that has run for /)
        expect(page).to match(%r{: \d+\.\d\d MB \+/- \S+ .B of \d+\.\d\d MB, and older objects have no site$})
        expect(page).to match(%r{^ *bytes +\+/- +objects +median age +site, class, endpoint$})
        line = %r{^ *\d+\.\d\d MB +\S+ .B +[\d,]+ +\S.* s  Cart#initialize shop\.rb:\d+  Array  POST /a$}
        expect(page).to match(line)
        expect(page).to match(/^ +(9\d|100)% held by Shop::CARTS → Hash → Cart → @items Array$/)
        expect(page).to match(/^\(without \d+ samples? of objects that nothing refers to any more\)$/)
        expect(page.index("Classes\n")).to be > page.index("Retained")
        items = page_of(pid, "--force", "--class", "Item")
        expect(items).to include("Retained by allocation site of Item\n").and include("Paths to instances of Item\n")
        expect(items).to include("Shop#site_b")
        expect(items).not_to include("Cart#initialize")
        expect(rperf("heap", pid.to_s, "--force", "-o", "old.json").status).to be_success
        expect(page_of("old.json")).to match(line)
        before = row(answer_of("old.json"), "Cart#initialize", "Array")["bytes"]
        File.write(path_to("go"), "")
        wait_until("more carts") { File.exist?(path_to("done")) }
        changes = answer_of("--base", "old.json", pid)["sites"]
        # Made without the endpoint of the first ones.
        grown = changes.find { |it| it["name"].match?(/\ACart#initialize .*  Array\z/) }
        expect(grown["now"]["bytes"]).to near(before * 15_000 / 12_000)
        expect(page_of("--base", "old.json", pid, "--force")).to include("Retained by allocation site, estimated\n")
      end
    end
  end

  it "knows nothing of objects that are older than the session, and says how to get sites without one" do
    code = <<~RUBY
      OLD = Array.new(50_000) { Array.new(70) }
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
    RUBY
    rest = "Rperf.stop; File.write('done', ''); sleep"
    holding(code, rest:) do |pid, _|
      sites = answer_of(pid)["sites"]
      expect(sites["total"]["bytes"]).to be < 3 * (1 << 20)
      File.write(path_to("go"), "")
      wait_until("the end of the session") { File.exist?(path_to("done")) }
      expect(answer_of(pid)["sites"]).to be_nil
      expect(page_of(pid, "--force")).to include(<<~LINE.tr("\n", " ").strip)
        Where these were made isn't known: no session of this program has --measure heap (rperf help what-stays).
        A forked worker needs RPERF_INHERIT=fork, too.
      LINE
    end
  end

  it "knows the sites of a forked worker with RPERF_INHERIT=fork" do
    code = <<~RUBY
      KEPT = []
      worker = fork do
        KEPT << Array.new(50_000) { Array.new(70) }
        Rperf.listen
        File.write("worker", Process.pid)
        sleep
      end
      puts worker
      sleep
    RUBY
    env = { "RPERF_ENABLED" => "1", "RPERF_MEASURE" => "heap", "RPERF_MAX_OVERHEAD" => "100", "RPERF_LISTEN" => "1",
            "RPERF_OUTPUT" => path_to("end.data") }
    { "fork" => true, "0" => false }.each do |inherit, is_known|
      listening(code, env: env.merge("RPERF_INHERIT" => inherit)) do |program|
        wait_until("the worker") { File.exist?(path_to("worker")) && !File.empty?(path_to("worker")) }
        sites = answer_of(Integer(program.lines.last))["sites"]
        expect(!sites.nil?).to be(is_known)
        expect(sites["total"]["bytes"]).to be > 10 * (1 << 20) if is_known
      end
      File.delete(path_to("worker"))
    end
  end

  it "has the caller of the application for what a library makes, and follows a profile that is cleared" do
    FileUtils.mkdir_p(path_to("gems/store-1.2.0/lib"))
    write_file("gems/store-1.2.0/lib/store.rb", "class Store; def self.fill(n) = Array.new(n) { Array.new(70) }; end")
    code = <<~RUBY
      require #{path_to("gems/store-1.2.0/lib/store.rb").dump}
      def fill = KEPT << Store.fill(10_000)
      KEPT = []
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      fill
      Rperf.snapshot(clear: true)
      fill
    RUBY
    holding(code) do |pid, _|
      rows = answer_of(pid)["sites"]["rows"].select { |it| it["class"] == "Array" && it["bytes"] > 1 << 20 }
      # The calls are in different lines.
      expect(rows.map { |it| it["made_in"]["method"] }).to all(match(/Store.fill/))
      expect(rows.map { |it| it["called_by"]["method"] }).to all(eq("Object#fill"))
      expect(rows.sum { |it| it["bytes"] }).to near(20_000 * 640)
      line = %r{Store\.fill store-1\.2\.0/lib/store\.rb:1 ← Object#fill \S+:\d+  Array$}
      expect(page_of(pid, "--force")).to match(line)
    end
  end

  it "stays right while threads make objects and sections come and go, and changes nothing in the program" do
    code = <<~RUBY
      Rperf.start(mode: :wall, measure: :heap, max_overhead: 100)
      shop = Shop.new
      busy = Array.new(2) { Thread.new { shop.site_d(50) until File.exist?("go") } }
      kept = Thread.new { (shop.site_a(1); shop.site_e(10); GC.start(full_mark: false)) until File.exist?("go") }
    RUBY
    rest = "[*busy, kept].each(&:join); puts Shop::CARTS.size == Shop::CARTS.values.count(&:items); sleep"
    holding(code, rest:) do |pid, _|
      3.times do
        sites = answer_of(pid)["sites"]
        rows = sites["rows"].select { |it| it["made_in"]&.fetch("method")&.include?("Shop#site_") }
        classes = { "a" => %w[Cart], "d" => %w[Array], "e" => %w[Array Float] }
        expect(rows).to all(satisfy { |it| classes[it["made_in"]["method"][-1]].include?(it["class"]) })
      end
      File.write(path_to("go"), "")
      wait_until("the result") { File.readlines(path_to(".listening1")).size == 2 }
      expect(File.readlines(path_to(".listening1"), chomp: true).last).to eq("true")
    end
  end
end
