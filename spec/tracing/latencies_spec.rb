# frozen_string_literal: true

require "json"

# How long the calls of each method take, in traces.
RSpec.describe "Latencies", vm: true do
  let(:work) { <<~RUBY }
    def quick = 1
    def now_and_then(n) = (sleep 0.05 if (n % 50).zero?)
    def deep(n) = n.zero? ? sleep(0.02) : deep(n - 1)
    def fails = (sleep 0.02; raise "no")
    def waits = Fiber.yield
    100.times { |n| quick; now_and_then(n) }
    deep(3)
    begin; fails; rescue; end
    fiber = Fiber.new { waits }
    fiber.resume
    sleep 0.03
    fiber.resume
  RUBY

  def methods_of(*options)
    rows = JSON.parse(rperf("report", "--format", "json", "-n", "1000", *options, "t.pb.gz").stdout).fetch("methods")
    rows.to_h { |row| [row["name"], row.values_at("p50_ns", "p99_ns", "max_ns")] }
  end

  it "are the durations of a method's calls, with all that passed in them" do
    write_file("work.rb", work)
    expect(rperf("trace", "--measure", "latency", "-o", "t.pb.gz", ruby, "work.rb").status).to be_success
    latencies = methods_of
    expect(latencies.fetch("Object#quick")).to all(be > 0)
    p50, p99, max = latencies.fetch("Object#now_and_then")
    expect(p50).to be < p99
    expect([p99, max]).to all(be > 43_000_000)
    expect(latencies.fetch("Object#deep").last).to be > 19_000_000
    expect(latencies.fetch("Object#fails").last).to be > 19_000_000
    expect(latencies.fetch("Object#waits").last).to be > 29_000_000
    table = rperf("report", "--methods", "t.pb.gz").stdout
    expect(table).to match(/^ *calls +blocks .* p50 +p99 +max /)
  end

  it "are of all processes, and of none where filters leave calls out" do
    write_file("forks.rb", "def nap(n) = sleep(n)\n9.times { nap(0) }\nProcess.wait(fork { nap(0.05) })\n")
    expect(rperf("trace", "--measure", "latency", "-o", "t.pb.gz", ruby, "forks.rb").status).to be_success
    p50, _, max = methods_of.fetch("Object#nap")
    expect(p50).to be < max
    expect(max).to be > 49_000_000
    expect(methods_of("--focus", "nap").fetch("Object#nap")).to eq([nil, nil, nil])
    expect(rperf("report", "--methods", "--by", "class", "t.pb.gz").stdout).not_to include("p99")
  end

  it "are of calls that have ended, and are let go of with a snapshot that clears" do
    write_file("clears.rb", <<~RUBY)
      require "rperf"
      def nap(n) = sleep(n)
      Rperf.start(mode: :trace, measure: [:latency])
      nap(0.2)
      Rperf.snapshot(clear: true)
      nap(0)
      def ends = Rperf.save("t.pb.gz", Rperf.stop)
      ends
    RUBY
    expect(run(ruby, "-W0", "-I#{File.join(Commands::ROOT, "lib")}", "clears.rb").stderr).to be_empty
    expect(methods_of.fetch("Object#nap").last).to be < 190_000_000
    expect(methods_of.fetch("Object#ends")).to eq([nil, nil, nil])
  end

  it "are refused where calls aren't timed" do
    expect(rperf("record", "--measure", "latency", ruby, "-e", "1").stderr)
      .to eq("rperf: --measure latency goes with -m trace, not with -m cpu\n")
    expect { Rperf.start(mode: :wall, measure: %i[alloc cpu]) }
      .to raise_error(ArgumentError, "measure: [:alloc, :cpu] goes with mode: :trace, not with mode: :wall")
    expect { Rperf.start(mode: :trace, calls: :count, measure: :latency) }
      .to raise_error(ArgumentError, "measure: [:latency] can't be combined with calls: :count: leave one of them out")
  end
end
