# frozen_string_literal: true

require "fileutils"
require "json"

# Each example tells what it took by a clock of its own, which the table is compared with. So does each factory.
RSpec.describe "rperf report --tests", vm: true do
  # What the examples and factories of these suites do.
  program = <<~RUBY
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    TOLD = []
    def tell(kind, name, ns) = TOLD << "\#{kind}\\t\#{name}\\t\#{ns}\\n"
    def write_told = File.write(ENV.fetch("TOLD"), TOLD.join, mode: "a")
    at_exit { write_told }

    def timed(kind, name)
      since = now
      yield
      tell(kind, name, now - since)
    end

    def spend(ms)
      ends = now + (ms * 1_000_000)
      nil while now < ends
    end

    # Around all that is defined later.
    if defined?(RSpec)
      RSpec.configure { |config| config.around { |example| timed("around", example.id) { example.run } } }
    end

    # As FactoryBot has it. Tells the least and the most that a run can have taken itself.
    class Factory
      def self.run(name, ms, *others)
        payload = { name:, strategy: :create, traits: [], overrides: {}, factory: nil }
        since = now
        nested = inner = 0
        ActiveSupport::Notifications.instrument("factory_bot.run_factory", payload) do
          begun = now
          timed("least", name) { spend(ms) }
          nested = others.sum { |it| run(*it) }
          inner = now - begun
        end
        tell("most", name, now - since - nested)
        inner
      end
    end
  RUBY

  notifications = File.read(File.join(__dir__, "../fixtures/notifications.rb"))

  # 40 examples in three files, which sleep or compute for 1 to 40 ms, and call factories.
  files = { "a" => (1..14), "b" => (15..27), "c" => (28..40) }

  def suite_file(numbers, head)
    examples = numbers.map do |number|
      work = number.even? ? "sleep(#{number} / 1000.0)" : "spend(#{number})"
      factory = "Factory.run(:team, 2, [:user, 3], [:user, 1])" if (number % 10).zero?
      "  it('takes #{number} ms') { |it| timed('example', it.id) { #{[work, factory].compact.join("; ")} } }"
    end
    "#{head}\nRSpec.describe 'File' do\n  before(:all) { timed('hooks', __FILE__) { sleep 0.02 } }\n" \
      "#{examples.join("\n")}\nend\n"
  end

  define_method(:write_suite) do
    write_file("program.rb", "#{notifications}#{program}")
    # A collection would come between two clocks, and in all runs between the same ones.
    head = "GC.disable\nrequire_relative '../program'\nrequire 'rperf/rspec'"
    Dir.mkdir(path_to("spec"))
    files.each { |name, numbers| write_file("spec/#{name}_spec.rb", suite_file(numbers, head)) }
  end

  # How many ms each example takes, with those of its factories.
  planned = files.flat_map do |name, numbers|
    numbers.map { |it| ["spec/#{name}_spec.rb[1:#{it - numbers.begin + 1}]", (it % 10).zero? ? it + 6 : it] }
  end.to_h

  # The pairs of examples that aren't in the planned order by their shortest walls, though 2 % and 1 ms apart there.
  define_method(:misplaced) do |walls|
    planned.keys.combination(2).select do |pair|
      short, long = pair.sort_by { |it| planned.fetch(it) }
      planned.fetch(long) > (planned.fetch(short) * 1.02) + 1 && walls.fetch(long) <= walls.fetch(short)
    end
  end

  def rspec_command(*arguments) = [ruby, *@compiler, Gem.bin_path("rspec-core", "rspec"), *arguments]

  def environment = { "TOLD" => path_to("told"), "RUBYLIB" => File.join(Commands::ROOT, "lib") }

  def record(*command, env: environment)
    rperf("record", "-m", "wall", "-o", "p.pb.gz", *command, env:)
  end

  def tests(*paths)
    outcome = rperf("report", "--tests", "--format", "json", "-n", "0", *paths)
    raise outcome.stderr unless outcome.status.success?

    JSON.parse(outcome.stdout, symbolize_names: true)[:tests]
  end

  # What the program's own clocks have told, by kind and name.
  def told_by_clocks(kind)
    rows = File.readlines(path_to("told"), chomp: true).map { |line| line.split("\t") }
    rows = rows.filter_map { |it, name, ns| [name.delete_prefix("./"), ns.to_i] if it == kind }
    rows.group_by(&:first).transform_values { |all| all.sum(&:last) }
  end

  # Processes at the same time take the CPU from each other. An emulator translates code that runs for the first time.
  def near?(wall, clock) = wall <= (clock * 1.02) + (1_000_000 * Commands::SLOWNESS * (@processes || 1))

  # Each lies between a clock that is read within and one that is read around it. Both are nearly the same, unless a
  # busy machine takes the CPU away in between: returns the names of the rows where they aren't.
  def expect_times(rows, least, most)
    expect(rows.map { |it| it[:name] }).to match_array(least.keys)
    rows.each do |it|
      expect(it[:wall_ns]).to be_between(*[least, most].map { |told| told.fetch(it[:name]) }), it.inspect
    end
    far = rows.map { |it| it[:name] unless near?(it[:wall_ns], least.fetch(it[:name])) }.compact
    expect(far.size).to be < rows.size / 2.0
    far
  end

  # Yields for a profile's tests until each row was near its clock once. With `in_order` the examples take what is
  # planned, too, as they do on a quiet machine.
  def expect_nearly(in_order: false)
    far = walls = nil
    (in_order ? 20 : 6).times do
      FileUtils.rm_f(path_to("told"))
      found = yield
      expect_whole(found)
      rows = found[:examples]
      others = expect_times(rows, *%w[example around].map { |it| told_by_clocks(it) }) + expect_factories(found)
      far = far ? far & others : others
      took = rows.to_h { |it| it.values_at(:name, :wall_ns) }
      walls = walls ? walls.merge(took) { |_, *all| all.min } : took
      break if far.empty? && !(in_order && misplaced(walls).any?)
    end
    expect(far).to eq([])
    expect(misplaced(walls)).to eq([]) if in_order
  end

  def wall(rows) = rows.sum { |it| it[:wall_ns] }

  def expect_whole(found)
    states = %i[running_ns gvl_wait_ns blocked_ns gc_ns suspended_ns]
    examples, files = found.values_at(:examples, :files)
    [found[:total], *examples, *files].each { |it| expect(it.values_at(*states).sum).to eq(it[:wall_ns]) }
    expect([wall(files), wall(examples) + files.sum { |it| it[:hooks_ns] }]).to all(eq(wall([found[:total]])))
    walls = examples.map { |it| it[:wall_ns] }
    expect(walls).to eq(walls.sort.reverse)
  end

  # Returns the names of those that aren't near their clocks.
  def expect_factories(found)
    team, user = %w[team user].map { |name| found[:factories].find { |it| it[:name] == "#{name} (create)" } }
    expect([team, user].map { |it| it.values_at(:count, :top_level) }).to eq([[4, 4], [8, 0]])
    expect([wall([team]), wall([user])]).to eq([team[:own_ns] + user[:own_ns], user[:own_ns]])
    { "team" => team, "user" => user }.filter_map do |name, it|
      least, most = %w[least most].map { |kind| told_by_clocks(kind)[name] }
      expect(it[:own_ns]).to be_between(least, most)
      name unless near?(it[:own_ns], least)
    end
  end

  # YJIT compiles RSpec's methods when they are called for the 30th time, which would be in the 30th example between two
  # clocks, for some milliseconds. The examples' own loops are compiled, too, if that is later.
  compilers = [["--disable-yjit"], (%w[--yjit --yjit-call-threshold=2000] if RbConfig::CONFIG["YJIT_SUPPORT"] != "no")]
  compilers.compact.each do |compiler, *further|
    it "has what each example, file and factory took by its own clock, with #{compiler}", alone: true do
      write_suite
      @compiler = [compiler, *further]
      found = nil
      expect_nearly(in_order: Commands::LONG) do
        record(*rspec_command("spec"))
        found = tests("p.pb.gz")
      end
      expect(found[:files].map { |it| it.values_at(:name, :count) })
        .to match_array([["spec/a_spec.rb", 14], ["spec/b_spec.rb", 13], ["spec/c_spec.rb", 13]])
      last = found[:examples].find { |it| it[:name] == "spec/c_spec.rb[1:13]" }
      expect(last[:title]).to eq("File takes 40 ms")
      expect(found[:files].map { |it| it[:hooks_ns] }).to all(be >= 20_000_000)
    end
  end

  it "has the same of four processes", alone: true do
    write_suite
    @processes = 4
    parts = (0..3).map do |part|
      files.map do |name, numbers|
        ids = (1..numbers.size).select { |place| place % 4 == part }
        "spec/#{name}_spec.rb[#{ids.map { |it| "1:#{it}" }.join(",")}]"
      end
    end
    commands = parts.map { |it| rspec_command(*it) }
    run = "pids = #{commands.inspect}.map { |it| spawn(*it) }; pids.each { |it| Process.wait(it) }"
    expect_nearly do
      record(ruby, "-e", run)
      tests("p.pb.gz").tap { |found| expect(found[:total][:count]).to eq(40) }
    end
  end

  # What RSpec says of the examples, without what differs from run to run.
  def results(outcome)
    json = JSON.parse(outcome.stdout[/^\{.*/], symbolize_names: true)
    examples = json[:examples].map do |it|
      [*it.values_at(:id, :status, :pending_message), it[:exception]&.values_at(:class, :message, :backtrace)]
    end
    [examples, json[:summary_line], outcome.status.exitstatus]
  end

  it "changes no result: not of examples that fail, are pending or skipped, raise, throw, exit or fork" do
    write_file("results_spec.rb", <<~RUBY)
      require "rperf/rspec"
      require "timeout"

      RSpec.configure { |config| config.around { |example| $around = Rperf.labels[:example]; example.run } }
      RSpec.describe "Results" do
        after { raise "after" if RSpec.current_example.metadata[:raises] }
        it("passes") {}
        it { expect(1).to eq(1) }
        it("fails") { expect(1).to eq(2) }
        it("raises") { raise Exception, "all" }
        it("throws") { throw :nowhere }
        it("fails afterwards", raises: true) {}
        it("exits") { exit!(3) if fork.nil?; Process.wait; raise $?.inspect[/exit 3/] }
        it("returns in a child") { Process.wait(fork { nil }); expect($?.exitstatus).to eq(0) }
        it("is pending") { pending("later"); expect(1).to eq(2) }
        it("is fixed") { pending("later"); expect(1).to eq(1) }
        it("skips") { skip("never") }
        xit("is skipped") {}
        it("takes too long") { Timeout.timeout(0.01, ArgumentError) { sleep } }
        it("is in a fiber") { Fiber.new { raise IndexError }.resume }
        it("stubs clocks") { allow(Process).to receive(:clock_gettime).and_raise("stubbed"); sleep(0) }
        it("is labelled outside of other hooks") do
          id = RSpec.current_example.id.delete_prefix("./") if ENV["RECORDED"]
          expect([$around, Rperf.labels[:example]]).to eq([id, id])
        end
        context("with a broken hook") { before(:all) { raise "all" }; it("isn't run") {} }
        context("with another one") { after(:all) { raise "all" }; it("is run") {} }
      end
    RUBY
    plain = run(*rspec_command("--format", "json", "results_spec.rb"), env: environment)
    recorded = record(*rspec_command("--format", "json", "results_spec.rb"), env: { **environment, "RECORDED" => "1" })
    expect(recorded.messages).to match([/\Arperf: wrote p.pb.gz/])
    expect(results(recorded)).to eq(results(plain))
    expect(results(plain).first.map { |it| it[1] }.tally).to eq("passed" => 6, "failed" => 9, "pending" => 3)
    names = tests("p.pb.gz")[:examples].map { |it| it[:name] }
    expect(names.size).to eq(16)
    expect(names).to include("results_spec.rb[1:3]", "results_spec.rb[1:18:1]")
  end

  it "has Minitest's tests with --rperf, those that run at once in threads, too", alone: true do
    write_file("program.rb", program)
    write_file("cart_test.rb", <<~RUBY)
      require "minitest/autorun"
      require_relative "program"

      class SlowTest < Minitest::Test
        parallelize_me!
        8.times { |number| define_method("test_\#{number}") { timed("example", "SlowTest#test_\#{number}") { sleep(0.05) } } }
      end

      # Around all that others prepend.
      module Around
        def run
          since = now
          super.tap { tell("around", "\#{self.class.name}#\#{name}", now - since) }
        end
      end
      Minitest.after_run { write_told }
      # Once all plugins have done so.
      module After
        def init_plugins(*) = super.tap { Minitest::Test.prepend(Around) }
      end
      Minitest.singleton_class.prepend(After)

      class FastTest < Minitest::Test
        def test_it = timed("example", "FastTest#test_it") { spend(5) }
        def test_fails = flunk
        def test_skips = skip
      end
    RUBY
    outcome = record(ruby, "cart_test.rb", "--rperf", "-v")
    expect(outcome.stdout).to include("11 runs, 1 assertions, 1 failures, 0 errors, 1 skips")
    expect(outcome.messages).to match([/\Arperf: wrote p.pb.gz/])
    found = tests("p.pb.gz")
    expect_whole(found)
    failed = %w[FastTest#test_fails FastTest#test_skips]
    timed = found[:examples].reject { |it| failed.include?(it[:name]) }
    expect_times(timed, told_by_clocks("example"), told_by_clocks("around"))
    expect(found[:examples].map { |it| it[:file] }.uniq).to eq(["cart_test.rb"])
    labelled = rperf("report", "--top", "--by", "label:example", "p.pb.gz").stdout
    expect(labelled).to match(/SlowTest#test_0$/)
    plain = run(ruby, "cart_test.rb", "--rperf", env: environment)
    expect(plain.stdout).to include("11 runs, 1 assertions, 1 failures, 0 errors, 1 skips")
  end

  it "is a page for people, too, and says if a profile has no tests" do
    write_suite
    record(*rspec_command("spec/a_spec.rb"))
    page = rperf("report", "--tests", "-n", "3", "p.pb.gz").stdout
    expect(page).to match(/^14 tests in 1 file: .* running \+ .* GVL wait \+ .* blocked \+ .* GC; [\d,]+ objects$/)
    expect(page).to match(%r{^Slowest tests$.*^\d.* spec/a_spec.rb\[1:1\d\] \(File takes 1\d ms\)$.*^\(11 more; -n}m)
    expect(page).to match(%r{^Files .* spec/a_spec.rb$.*^Factories .* user \(create\)$.*^Gems .*\(application\)$}m)
    rperf("record", "-m", "wall", "-o", "none.pb.gz", ruby, "-e", "sleep 0.02")
    refused = { ["none.pb.gz"] => /\Arperf: the profile has no tests: .*\n\z/,
                ["--focus", "spend", "p.pb.gz"] => /\Arperf: filters have no meaning for --tests, .*\n\z/ }
    refused.each do |arguments, line|
      [[], ["--format", "json"]].each do |format|
        outcome = rperf("report", "--tests", *format, *arguments)
        expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr]).to match([2, "", line])
      end
    end
  end

  it "has the ops of tests, by samples, and which test has the most" do
    write_file("ops_spec.rb", <<~RUBY)
      require "rperf/rspec"
      RSpec.describe "Ops" do
        def query(seconds, table = "items") = Rperf.op("SELECT * FROM \#{table} WHERE id = 1", kind: :sql) { sleep seconds }
        before(:all) { query(0.3) }
        it("waits") { query(0.1) }
        it("waits longer") { query(0.2) && query(0.05, "others") }
        it("doesn't") { sleep 0.1 }
      end
    RUBY
    outcome = record("--measure", "ops", *rspec_command("ops_spec.rb"))
    expect(outcome.status).to be_success, outcome.stderr
    ops = tests("p.pb.gz")[:ops]
    items, others = %w[items others].map { |table| "[SQL] SELECT * FROM #{table} WHERE id = ?" }
    expect(ops.map { |it| it.values_at(:name, :tests, :most_in) })
      .to eq([[items, 2, "ops_spec.rb[1:2]"], [others, 1, "ops_spec.rb[1:2]"]])
    expect(ops.map { |it| it[:self] / 1e6 }).to match([be_between(280, 1_000), be_between(40, 500)])
    expect(ops.map { |it| it[:most] / 1e6 }).to match([be_between(180, 800), be_between(40, 500)])
    row = /[\d.]+ ms +2  #{Regexp.escape(items)} \([\d.]+ ms in ops_spec.rb\[1:2\]\)/
    expect(rperf("report", "--tests", "p.pb.gz").stdout).to match(/^Ops .*\n +self  tests  op\n#{row}\n/)
  end

  it "has factories that the real ActiveSupport tells of, and those that fail or call themselves" do
    begin
      Gem::Specification.find_by_name("activesupport")
    rescue Gem::MissingSpecError
      skip "there is no ActiveSupport"
    end
    found = told(<<~RUBY, symbolize_names: true, env: { "TOLD" => path_to("told") })
      require "active_support"
      require "active_support/notifications"
      require "rperf/suite"
      require "rperf/suite/factories"
      #{program}
      Rperf.const_get(:Suite)::Factories.watch
      profile = Rperf.start(mode: :wall) do
        Factory.run(:list, 2, [:list, 3, [:item, 4]])
        begin
          ActiveSupport::Notifications.instrument("factory_bot.run_factory", { name: :bad, strategy: :build }) { raise "x" }
        rescue RuntimeError
          nil
        end
        2.times.map { Thread.new { Factory.run(:item, 1) } }.each(&:join)
      end
      puts profile.tests.to_json
    RUBY
    list, item, bad = ["list (create)", "item (create)", "bad (build)"].map do |name|
      found[:factories].find { |it| it[:name] == name }
    end
    expect([list, item, bad].map { |it| it.values_at(:count, :top_level) }).to eq([[2, 1], [3, 2], [1, 1]])
    expect(list[:wall_ns]).to be >= 9_000_000
    expect(list[:own_ns]).to be_between(5_000_000, list[:wall_ns] - 4_000_000)
    expect(found[:total][:count]).to eq(0)
  end

  it "has a row for the further tests of a file beyond 64,000, whose label is the file" do
    found, labels = told(<<~RUBY, symbolize_names: true)
      require "rperf/suite"
      suite = Rperf.const_get(:Suite)
      labels = []
      profile = Rperf.start(mode: :wall) do
        64_003.times do |number|
          suite.test("a_spec.rb", "a_spec.rb[\#{number}]".freeze) { labels = Rperf.labels.to_a if number > 64_000 }
        end
      end
      puts [profile.tests, labels].to_json
    RUBY
    expect(found.values_at(:row_count, :without_row)).to eq([64_001, 3])
    expect(found[:examples].find { |it| it[:name].empty? }).to include(file: "a_spec.rb", title: "", count: 3)
    expect(labels).to match_array([%w[example a_spec.rb], %w[group a_spec.rb]])
  end
end
