# frozen_string_literal: true

require "etc"

# With RUBY_MN_THREADS=1 a thread that is about to wait, and need not, gives the GVL up by its events and goes on
# without a further one. On a busy machine that is often.
RSpec.describe "a session with threads that share native threads", vm: true, alone: true do
  around do |example|
    busy = Array.new(Etc.nprocessors + 1) { Process.spawn(ruby, "--disable-gems", "-e", "loop { 1 }") }
    example.run
  ensure
    busy&.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  { "wall" => "MONOTONIC", "cpu" => "THREAD_CPUTIME_ID" }.each do |mode, clock|
    it "has the time of a thread that works after short waits in #{mode} mode" do
      seen = told(<<~RUBY, env: { "RUBY_MN_THREADS" => "1" }, limit: 120)
        def now = Process.clock_gettime(Process::CLOCK_#{clock}, :nanosecond)
        def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
        def work
          limit = cpu + 20_000_000
          nil while cpu < limit
        end
        worked = slept = 0
        Rperf.start(mode: :#{mode})
        Thread.new do
          100.times do
            before = now
            sleep 0.00002
            awake = now
            work
            slept += awake - before
            worked += now - awake
          end
        end.join
        found = Rperf.stop[:samples].each_with_object(Hash.new(0)) do |(frames, weight, *), sums|
          names = frames.map(&:last)
          sums["work"] += weight if names.include?("Object#work")
          sums["sleep"] += weight if names.include?("Kernel#sleep")
        end
        print JSON.generate(found.merge("worked" => worked, "slept" => slept))
      RUBY
      expect(seen["work"]).to be_within(0.1 * seen["worked"]).of(seen["worked"])
      expect(seen["sleep"].to_i).to be < seen["slept"] + (0.1 * seen["worked"])
    end
  end
end
