# frozen_string_literal: true

require "json"

# Two states of a suite, in several runs of each.
RSpec.describe "rperf diff --tests", vm: true do
  # The ids of those that stay differ, as one comes before them. The objects are of the examples alone.
  def suite_file(sleeps:, arrays:, further: "")
    <<~RUBY
      require "rperf/rspec"
      RSpec.describe "A suite" do
        #{further}
        it("waits") { sleep #{sleeps * Commands::SLOWNESS} }
        it("sleeps as before") { sleep 0.03 }
        it("makes arrays") { #{arrays}.times { [] } }
      end
    RUBY
  end

  def record(name, runs, **suite)
    write_file("a_spec.rb", suite_file(**suite))
    outcome = rperf("record", "-m", "wall", "--runs", runs.to_s, "-o", "#{name}.pb.gz", ruby,
                    Gem.bin_path("rspec-core", "rspec"), "a_spec.rb",
                    env: { "RUBYLIB" => File.join(Commands::ROOT, "lib") })
    expect(outcome.status).to be_success, outcome.stderr
    Dir.glob(path_to("#{name}*.pb.gz"))
  end

  before do
    @base = record("before", 3, sleeps: 0.02, arrays: 1_000)
    @target = record("after", 3, sleeps: 0.12, arrays: 9_000, further: 'it("is new") { sleep 0.01 }')
  end

  def sides(base = @base, target = @target) = ["--base", *base, "--target", *target]

  def rows(*arguments)
    outcome = rperf("diff", "--tests", "--format", "json", *arguments)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    told = JSON.parse(outcome.stdout)
    expect(told["rows_are"]).to eq("tests")
    told.fetch("rows").to_h { |it| [it["name"], it] }
  end

  it "tells which tests are slower, beyond the noise of several runs, and fails for them" do
    times = rows(*sides)
    expect(times["A suite waits"]).to include("change" => "slower", "delta" => be_between(80_000_000, 2_000_000_000))
    expect(times["A suite is new"]).to include("base" => 0)
    limits_are_kept_beyond_the_noise
    objects_are_counted
    one_run_tells_no_noise
    it_is_a_page_for_people
    it_is_a_hash_of_the_api
  end

  def limits_are_kept_beyond_the_noise
    outcome = rperf("diff", "--tests", "--fail-above", "100", *sides)
    expect(outcome.status.exitstatus).to eq(3)
    expect(outcome.stderr).to match(/\Arperf: more than 100% slower, beyond the noise: .*A suite waits \(\+/)
    expect(outcome.stderr).not_to include("sleeps as before")
    expect(rperf("diff", "--tests", "--fail-above", "5000", *sides).status).to be_success
  end

  # From Ruby 4.0 on a thousand may be missing.
  def objects_are_counted
    made = rows("--value", "objects", *sides)
    expect(made["A suite makes arrays"]).to include("change" => "more", "delta" => be_between(6_900, 9_100))
    outcome = rperf("diff", "--tests", "--value", "objects", "--fail-above", "30", *sides)
    expect(outcome.status.exitstatus).to eq(3)
    expect(outcome.stderr).to match(/\Arperf: more than 30% more, beyond the noise: .*A suite makes arrays \(\+/)
  end

  def one_run_tells_no_noise
    one = [@base.first, @target.first]
    expect(rows(*one)["A suite waits"]).to include("change" => "unknown")
    outcome = rperf("diff", "--tests", "--fail-above", "100", *one)
    expect([outcome.status.exitstatus,
            outcome.stderr]).to match([2, /can't tell: a test takes more or less in each run/])
  end

  def it_is_a_page_for_people
    text = rperf("diff", "--tests", *sides).stdout
    expect(text).to match(/\AType: wall_without_gc of tests\nBase: .*, mean of 3 runs \(.*^Total: .*slower$/m)
    expect(text).to match(/slower  A suite waits \(a_spec\.rb\[1:2\]\)$/)
    markdown = rperf("diff", "--tests", "--format", "markdown", *sides).stdout
    expect(markdown).to match(/^\|.* delta .* test .* id/)
  end

  def it_is_a_hash_of_the_api
    told = JSON.parse(rperf("diff", "--tests", "--format", "json", *sides).stdout, symbolize_names: true)
    expect(Rperf.diff(@base, @target, tests: true)).to eq(told)
    one = [@base, @target].map { |side| Rperf.load(side.first) }
    objects = one.first.diff(one.last, tests: true, value: :objects, limit: 1)
    expect(objects).to include(rows_are: "tests", rows: [include(name: "A suite makes arrays", target: be > 9_000)])
  end
end

RSpec.describe "rperf diff --tests, misused" do
  {
    %w[--tests --web a b] =>
      "--tests goes with --top, --text, --format markdown or --format json, not with --web",
    %w[--tests --calls a b] =>
      "--tests goes with --top, --text, --format markdown or --format json, not with --calls",
    %w[--tests --focus x a b] =>
      "a filter has no meaning for --tests, which compares the exact values of whole tests",
    %w[--tests --normalize total a b] =>
      "--normalize has no meaning for --tests, which compares the exact values of whole tests",
    %w[--tests --value cpu a b] =>
      "--value of --tests must be one of wall_without_gc, wall, running, gvl_wait, blocked, gc, objects, not 'cpu'"
  }.each do |arguments, message|
    it "is refused in one line: #{arguments.join(" ")}" do
      outcome = rperf("diff", *arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([2, "rperf: #{message}\n"])
    end
  end

  it "needs profiles with tests" do
    path = path_to("p.pb.gz")
    Rperf.start(mode: :wall) { nil }.save(path)
    outcome = rperf("diff", "--tests", path, path)
    expect([outcome.status.exitstatus,
            outcome.stderr]).to match([2, /\Arperf: .*p\.pb\.gz: the profile has no tests: /])
  end

  it "is refused by the API, too" do
    profile = Rperf.start(mode: :wall) { nil }
    expect { profile.diff(profile, tests: true) }.to raise_error(Rperf::Error, "base: the profile has no tests")
    { sort: :total, normalize: :total, focus: "x", hide_ops: true }.each do |name, value|
      expect { profile.diff(profile, tests: true, name => value) }
        .to raise_error(ArgumentError, "#{name}: has no meaning for tests")
    end
    expect { profile.diff(profile, tests: true, value: :cpu) }
      .to raise_error(ArgumentError, "value: must be :wall_without_gc, :wall, :running, :gvl_wait, :blocked, :gc, " \
                                     ":objects, not :cpu")
    expect { profile.diff(profile, tests: 1) }.to raise_error(ArgumentError, /\Atests: must be true or false/)
  end
end
