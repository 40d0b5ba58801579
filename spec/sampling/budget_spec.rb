# frozen_string_literal: true

# How many samples are taken, and what they may cost: docs/internals/accounting.md.
RSpec.describe "The budget of samples", vm: true, alone: true do
  # Threads that sleep 1 ms again and again, half of them at each of two methods.
  def sleep_here(ending) = (sleep 0.001 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ending)
  def sleep_there(ending) = (sleep 0.001 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ending)

  # Profiles them; all are there before.
  def profile_sleepers(count, seconds)
    endings = Queue.new
    methods = %i[sleep_here sleep_there]
    threads = Array.new(count) { |number| Thread.new { send(methods[number % 2], endings.pop) } }
    Rperf.start(mode: :wall, frequency: 1000) do
      ending = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      count.times { endings << ending }
      threads.each(&:join)
    end
  end

  def blocked(profile, method = "")
    rows = profile[:samples].select { |row| row[0][0][1] == "[GVL blocked]" }
    rows.select { |row| row[0].any? { |_, name| name.end_with?(method) } }
  end

  def time(rows) = rows.sum { |row| row[1] }

  it "bounds the stacks of many threads, and each thread has all of its time" do
    profile = profile_sleepers(200, 1.5)
    expect(profile[:off_gvl_interval_ns]).to be > 5_000_000
    # Unbounded, it would be one for each sleep of each thread. A start may take more at once.
    count = blocked(profile).sum { |row| row[4] }
    expect(count).to be < (profile[:duration_ns] / 1_000_000 * 5) + 3_000
    by_thread = profile[:samples].group_by { |row| row[2] }.except(0).transform_values { |rows| time(rows) }
    expect([by_thread.size, by_thread.values.min]).to match([201, be > 1_000_000_000])
    shares = %w[sleep_here sleep_there].map { |name| time(blocked(profile, name)) }
    expect(shares.min / shares.max.to_f).to be > 0.8
  end

  # An emulator takes all of the budget for these.
  it "leaves a few threads their stacks", emulated: false do
    expect(profile_sleepers(2, 0.5)[:off_gvl_interval_ns]).to eq(1_000_000)
  end

  it "is told by -v, and in the file", alone: false do
    program = <<~RUBY
      ending = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
      threads = Array.new(100) do
        Thread.new { sleep 0.001 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ending }
      end
      threads.each(&:join)
    RUBY
    outcome = rperf("record", "-m", "wall", "-v", "-o", "p.pb.gz", ruby, "-e", program)
    said = /^\[rperf\] longest intervals: [\d.]+ ms between ticks, ([\d.]+) ms of a thread's time blocked or waiting$/
    expect(outcome.stderr).to match(said)
    file = Zlib.gunzip(File.binread(path_to("p.pb.gz")))
    longest = outcome.stderr[said, 1]
    expect(file).to include("taken as seldom as every #{longest} ms of a thread's time, as there were many")
  end

  describe "max_overhead:" do
    def deep(frames, &) = frames.zero? ? yield : deep(frames - 1, &)

    def busy(max_overhead)
      Rperf.start(mode: :cpu, frequency: 10_000, max_overhead:) do
        started = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
        deep(1_000) { nil until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) > started + 1.5 }
      end
    end

    it "lengthens the intervals where sampling costs more, and the time stays whole" do
      profile = busy(1)
      expect(profile[:interval_ns]).to be > 150_000
      expect(profile[:off_gvl_interval_ns]).to be >= profile[:interval_ns]
      expect(time(profile[:samples])).to be_within(300_000_000).of(1_500_000_000)
    end

    it "is no limit at 100" do
      expect(busy(100)[:interval_ns]).to eq(100_000)
    end
  end
end
