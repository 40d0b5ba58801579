# frozen_string_literal: true

# Clocks that jump, and that two processes don't agree on.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  def expect_times(left)
    seconds = left.profile[:samples].map { |_, weight,| weight }
    expect(seconds).to all(be >= 0)
    # When processes began is known by the time of day.
    most = left.profile[:label_sets].to_a.any? { |set| set.key?(:"%pid") } ? Float::INFINITY : left.seconds * 1e9
    expect(left.profile[:duration_ns]).to be_between(0, most)
  end

  # Calls of clock_gettime that rperf makes are wrong; the program's aren't.
  def wrong(clock, nanoseconds, nth)
    File.write(path_to(".made"), "")
    { "LD_PRELOAD" => Faults.library, "FAULTS_IN" => "rperf.so", "FAULTS_CALLS" => "clock_gettime",
      "FAULTS_CLOCK" => clock.to_s, "FAULTS_STEP" => nanoseconds.to_s, "FAULTS_NTH" => nth,
      "FAULTS_MADE" => path_to(".made") }
  end

  hour = 3600 * 1_000_000_000
  {
    "an hour later" => [Process::CLOCK_REALTIME, hour, "2+"],
    "an hour earlier" => [Process::CLOCK_REALTIME, -hour, "2+"],
    "an hour later and earlier in turn" => [Process::CLOCK_REALTIME, hour, "/2"],
    "a nanosecond earlier at each second call" => [Process::CLOCK_MONOTONIC, -1, "/2"],
    "a microsecond earlier now and then" => [Process::CLOCK_MONOTONIC, -1000, "/7"]
  }.each_with_index do |(what, (clock, nanoseconds, nth)), index|
    Faults.kinds(index).each do |kind|
      it "is as without rperf, and so are its times, when its clock is #{what} (#{kind})" do
        lefts = expect_same(kind, env: wrong(clock, nanoseconds, nth))
        expect(File.size(path_to(".made"))).to be_positive
        lefts.each { |left| expect_times(left) }
      end
    end
  end

  Faults.kinds(3).each do |kind|
    it "is as without rperf where the machine was started an hour earlier (#{kind})" do
      before = %w[unshare --time --monotonic 3600 --boottime 3600 --fork --kill-child]
      skip "there are no clocks of its own" unless run(*before, "true").status.success?

      expect_same(kind, before:).each { |left| expect_times(left) }
    end
  end
end
