# frozen_string_literal: true

require "json"

# Time lines: the long calls of a trace, with their begins and ends, as a Chrome trace.
RSpec.describe "A time line", vm: true do
  program = <<~RUBY
    def outer = (inner; sleep 0.02)
    def inner = sleep 0.01
    def short = 1
    def each_of = yield

    100.times { short }
    outer
    each_of { sleep 0.02 }
    Thread.new { outer }.join
    fiber = Fiber.new { outer; Fiber.yield; inner }
    def resumes(fiber) = (fiber.resume; short; sleep 0.01; fiber.resume)
    resumes(fiber)
  RUBY

  def trace(source, *)
    write_file("app.rb", source)
    rperf("trace", *, ruby, "app.rb")
  end

  # The slices of a file: a name, the name of their track, begin and end in ms.
  def slices(name = "app.spans.json")
    events = JSON.parse(File.read(path_to(name)), symbolize_names: true).fetch(:traceEvents)
    names, calls = events.partition { |event| event[:ph] == "M" }
    tracks = names.select { |event| event[:name] == "thread_name" }
    tracks = tracks.to_h { |event| [event.values_at(:pid, :tid), event.dig(:args, :name)] }
    calls.map do |event|
      expect(event).to include(ph: "X", cat: "call")
      { name: event[:name], track: tracks.fetch(event.values_at(:pid, :tid)), pid: event[:pid],
        begin: event[:ts] / 1e3, end: (event[:ts] + event[:dur]) / 1e3, open: event.key?(:args) }
    end
  end

  # Each slice of a track lies within the one around it.
  def expect_nested(slices)
    slices.group_by { |it| it.values_at(:pid, :track) }.each_value do |track|
      track.each_cons(2) { |one, next_one| expect(one[:begin]).to be <= next_one[:begin] }
      track.combination(2) do |one, other|
        apart = other[:begin] >= one[:end] - 1e-6 || other[:end] <= one[:end] + 1e-6
        expect(apart).to be(true), "#{one} and #{other}"
      end
    end
  end

  def named(slices, name) = slices.select { |it| it[:name] == name }

  it "has the calls that take long, on the tracks of their threads and fibers" do
    outcome = trace(program, "--spans", "5ms")
    expect(outcome.stderr).to start_with("rperf: wrote rperf.data (")
    expect(rperf("report", "-o", "app.spans.json").status.exitstatus).to eq(0)
    all = slices
    expect(named(all, "Object#short")).to be_empty
    expect(named(all, "Object#outer").map { |it| it[:track] })
      .to match([/\Athread \d: main\z/, /\Athread \d\z/, /\Athread \d: main, fiber \d+\z/])
    named(all, "Object#outer").zip(named(all, "Object#inner")).each do |outer, inner|
      expect(outer[:end] - outer[:begin]).to be > 29
      expect([inner[:track], inner[:begin]]).to match([outer[:track], be_between(outer[:begin], outer[:end])])
    end
    expect(named(all, "Object#inner").size).to eq(4)
    expect(named(all, "Object#each_of").size).to eq(1)
    expect(named(all, "block in <main>").size).to be >= 1
    # The call goes on while the fibers take turns.
    resumes = named(all, "Object#resumes").first
    expect(resumes[:track]).to eq(named(all, "Object#each_of").first[:track])
    expect(resumes[:end] - resumes[:begin]).to be > 45
    expect(resumes[:open]).to be(false)
    expect_nested(all)
  end

  it "is written without the profile, and has calls that are open at the end" do
    outcome = trace("def ends = (sleep 0.02; exit!)\nends", "--spans", "10ms", "-o", "app.spans.json")
    expect(outcome.messages).to match([/\Arperf: wrote app\.spans\.json/])
    expect(named(slices, "Object#ends")).to match([include(open: true)])
  end

  it "has all processes in one time" do
    trace("def waits = sleep(0.03)\nProcess.wait(fork { waits })\nwaits", "--spans", "20ms")
    rperf("report", "--format", "spans", "-o", "app.spans.json")
    first, second = named(slices, "Object#waits").sort_by { |it| it[:begin] }
    expect(first[:pid]).not_to eq(second[:pid])
    expect(second[:begin]).to be > first[:end]
  end

  it "is part of a profile in Ruby" do
    write_file("app.rb", <<~RUBY)
      require "rperf"
      def waits = sleep(0.02)
      profile = Rperf.trace(spans: "10ms", warn: false) { 2.times { waits } }
      profile.save("app.spans.json")
      p profile.top(value: "calls").find { |row| row[:name] == "Object#waits" }[:self]
    RUBY
    outcome = run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", "app.rb")
    expect([outcome.stderr, outcome.stdout]).to eq(["", "2\n"])
    expect(named(slices, "Object#waits").size).to eq(2)
  end

  it "leaves the profile as it is" do
    trace(program, "--spans", "5ms", "-o", "with.data")
    trace(program, "-o", "without.data")
    counts = %w[with.data without.data].map do |name|
      rows = Rperf.load(path_to(name)).top(value: "calls")
      rows.to_h { |row| [row[:name], row[:self]] }.select { |method, _| method.start_with?("Object#") }
    end
    expect(counts.first).to eq(counts.last)
    expect(counts.first).to include("Object#short" => 101, "Object#outer" => 3)
  end

  it "is not written of a profile without one" do
    profile = Rperf.start { 1 + 1 }
    none = 'the profile has no time line: Rperf.trace(spans: "1ms") keeps one'
    expect { profile.save(path_to("app.spans.json")) }.to raise_error(ArgumentError, none)
    expect { Rperf.save(path_to("app.data"), profile, format: :spans) }.to raise_error(ArgumentError, none)
    expect(Dir.children(path_to("."))).to be_empty
  end

  {
    %w[trace --spans 0ms ruby] => "--spans must be a time of 1us to 1h, such as 500us, 1ms or 2s, not '0ms'",
    %w[trace --spans 1 ruby] => "--spans must be a time of 1us to 1h, such as 500us, 1ms or 2s, not '1'",
    %w[trace --spans 2h ruby] => "--spans must be a time of 1us to 1h, such as 500us, 1ms or 2s, not '2h'",
    %w[trace --calls count --spans 1ms ruby] => "--spans 1ms goes with --calls ruby, not with --calls count",
    %w[trace -o /tmp/a.spans.json ruby] =>
      "-o /tmp/a.spans.json is a time line: --spans must say how long its calls take at least",
    %w[trace --format spans ruby] => "--format spans is a time line: --spans must say how long its calls take at least",
    %w[record -m wall -o /tmp/a.spans.json ruby] =>
      "-o /tmp/a.spans.json is a time line: 'rperf trace --spans 1ms' keeps one",
    %w[record --format spans ruby] => "--format spans is a time line: 'rperf trace --spans 1ms' keeps one",
    %w[report --format spans] => "the profile has no time line: 'rperf trace --spans 1ms' keeps one"
  }.each do |arguments, message|
    it "refuses #{arguments.join(" ")} in one line" do
      Rperf.save(path_to("rperf.data"), { mode: :wall, frequency: 1000, duration_ns: 1, samples: [] })
      outcome = rperf(*arguments)
      expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr]).to eq([2, "", "rperf: #{message}\n"])
    end
  end
end
