# frozen_string_literal: true

require "json"
require_relative "../../bench/support/pprof"
require_relative "../support/compilers"

# Nothing of ours throws compiled code away, or makes it leave for the interpreter.
RSpec.describe "compiled code", vm: true, alone: true, if: Compilers::FLAGS.key?("YJIT") do
  program = <<~'RUBY'
    require "rperf"
    require "json"

    def work(turns)
      turn = 0
      turn += 1 while turn < turns
      turn
    end

    def short = 10.times { work(20) }

    # The compiler's counts while the block ran 100 times, once it had nothing more to compile.
    def counted
      keys = %i[invalidation_count side_exit_count]
      before = after = RubyVM::YJIT.runtime_stats
      5.times do
        before = RubyVM::YJIT.runtime_stats
        100.times { yield }
        after = RubyVM::YJIT.runtime_stats
        break if before[:compiled_block_count] == after[:compiled_block_count]
      end
      keys.to_h { |key| [key, after[key] - before[key]] }
    end

    def switching
      Rperf.label(fiber: 1) do
        fiber = Fiber.new { 5.times { Fiber.yield short } }
        5.times { fiber.resume }
      end
    end

    300.times { short }
    seen = {}
    seen["nothing"] = counted { short }
    seen["start and stop"] = counted { Rperf.start(mode: :wall) { short } }
    Rperf.start(mode: :wall)
    seen["a session"] = counted { short }
    seen["labels"] = counted { Rperf.label(request: 1) { short } }
    seen["switches of fibers"] = counted { switching }
    seen["snapshots"] = counted { short && Rperf.snapshot(clear: true) }
    seen["collections"] = counted { short && GC.start(full_mark: false) }
    Rperf.stop
    Rperf.start(mode: :cpu, defer: true)
    seen["sections"] = counted { Rperf.profile(part: 1) { short } }
    jobs = Rperf.stop[:safepoint_calls]
    puts JSON.generate(seen.transform_values { |counts| counts.merge(jobs:) })
  RUBY

  it "is neither thrown away nor left, whatever a session does" do
    outcome = run(ruby, "--yjit", "--yjit-stats=quiet", "-I#{Commands::ROOT}/lib", write_file("counted.rb", program))
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    seen = JSON.parse(outcome.stdout, symbolize_names: true)
    expect(seen.size).to eq(8)
    # Code that has just been compiled is left now and then, where it was not expected to come.
    expect(seen.values).to all(include(invalidation_count: 0, side_exit_count: be < 30, jobs: be < 10))
  end

  # Calls of three methods that differ in length, with the CPU time that each took.
  timed_methods = <<~'RUBY'
    require "rperf"
    require "json"
    NUMBERS = (1..64).to_a

    def adding(turns)
      turn = 0
      turn += 1 while turn < turns
    end

    def indexing(turns)
      turn = sum = 0
      while turn < turns
        sum ^= NUMBERS[turn & 63]
        turn += 1
      end
    end

    def tiny(number) = number + 1

    def calling(turns)
      turn = 0
      turn = tiny(turn) while turn < turns
    end

    def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)

    def work(turns, nanoseconds, truth)
      ends = now + nanoseconds
      while now < ends
        { adding: 3, indexing: 2, calling: 1 }.each do |name, times|
          began = now
          send(name, turns * times)
          truth[name] += now - began
        end
      end
    end

    work(100, 500_000_000, Hash.new(0))
    truth = Hash.new(0)
    data = Rperf.start(mode: :cpu) { work(300_000, 3_000_000_000, truth) }
    found = truth.keys.to_h do |name|
      [name, data[:samples].sum { |row| row[0].any? { |frame| frame.last == "Object##{name}" } ? row[1] : 0 }]
    end
    percent = ->(times) { times.values.map { |time| time * 100.0 / times.values.sum } }
    puts JSON.generate([truth, found].map(&percent))
  RUBY

  Compilers::FLAGS.each_value do |flag|
    it "has its methods' true shares, with #{flag}" do
      outcome = run(ruby, flag, "-I#{Commands::ROOT}/lib", write_file("timed.rb", timed_methods))
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      truth, found = JSON.parse(outcome.stdout)
      expect(truth).to all(be > 5)
      expect(found).to match(truth.map { |share| be_within(3).of(share) })
    end
  end

  # Two loops on lines of their own; one turns three times as often as the other.
  lines = <<~'RUBY'
    require "rperf"
    TABLE = { "a name of some length" => 1 }.freeze
    NAME = "a name of some length".dup

    def compute(turns)
      turn = 0
      turn += 1 while turn < turns * 3
      turn = 0
      turn += 1 while turn < turns
    end

    def look_up(turns)
      turn = 0
      (TABLE[NAME]; turn += 1) while turn < turns * 3
      turn = 0
      (TABLE[NAME]; turn += 1) while turn < turns
    end

    def work(name, turns, seconds)
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      send(name, turns) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
    end

    # Its branches on lines 30, 32, 34 and 36 hardly ever run, or never.
    def branch(turns)
      turn = 0
      sum = 0
      while turn < turns
        if (turn & 4095) == 77
          sum += 1
        elsif (turn & 4095) == 78
          sum += 2
        elsif (turn & 4095) == 79
          sum += 3
        elsif turn > 1 << 60
          sum += 4
        else
          sum ^= turn
        end
        turn += 1
      end
    end

    name, turns = ARGV[0].to_sym, Integer(ARGV[1])
    work(name, turns, 0.5)
    Rperf.start(mode: :cpu, output: "lines.pb.gz") { work(name, turns, 1.5) }
  RUBY

  # Percent of the method's time by line.
  def shares_of(method)
    samples = Bench::Pprof.read(path_to("lines.pb.gz")).samples
    sums = samples.each_with_object(Hash.new(0)) do |sample, times|
      frame = sample.frames.first
      times[frame.line] += sample.values.fetch("cpu") if frame.function.end_with?(method)
    end
    sums.transform_values { |sum| sum * 100.0 / sums.values.sum }
  end

  # The machine code of others isn't read.
  flags = %w[x86_64 aarch64].include?(RbConfig::CONFIG["host_cpu"]) ? Compilers::FLAGS.values : []
  flags.each do |flag|
    { "compute" => [7, 9], "look_up" => [14, 16] }.each do |method, (often, seldom)|
      it "has the time of each line of #{method}, with #{flag}" do
        turns = method == "compute" ? "20000" : "1000"
        outcome = run(ruby, flag, "-I#{Commands::ROOT}/lib", write_file("lines.rb", lines), method, turns,
                      env: Commands::INTERRUPTED_ANYWHERE)
        expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
        shares = shares_of(method)
        expect(shares).to include(often => be_within(15).of(75), seldom => be_within(15).of(25))
        expect(shares.fetch(0, 0)).to be < 20
      end
    end

    it "has no time for lines that hardly ever run, with #{flag}" do
      outcome = run(ruby, flag, "-I#{Commands::ROOT}/lib", write_file("lines.rb", lines), "branch", "20000")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      shares = shares_of("branch")
      expect(shares.keys - [0]).to all(be_between(25, 42))
      expect(shares.values_at(30, 32, 34, 36).compact).to all(be < 4)
    end
  end
end
