# frozen_string_literal: true

# Accounts: where the time of a block, a request or a job went, without a profile.
RSpec.describe "Rperf.account", vm: true do
  head = <<~RUBY
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def compute(ms)
      deadline = now + (ms / 1000.0)
      nil while now < deadline
    end

    STATES = %i[running_ns gvl_wait_ns blocked_ns gc_ns suspended_ns]
    # What is missing from, or too much in, the sum of the states.
    def rest(account) = STATES.sum { |state| account.to_h[state] } - account.wall_ns
  RUBY

  define_method(:told_of) { |program, *options, **run| told("#{head}\n#{program}", *options, **run) }

  compilers = ["--disable-yjit", *("--yjit" if RbConfig::CONFIG["YJIT_SUPPORT"] != "no")]
  compilers.each do |compiler|
    it "tells running, blocked and waiting time and objects, with #{compiler}", alone: true do
      account, expected, rest = told_of(<<~RUBY, compiler)
        go = Queue.new
        working = false
        hog = Thread.new { go.pop; working = true; compute(#{60 * Commands::SLOWNESS}) }
        expected = {}
        account = Rperf.account("work") do
          since = now
          compute(#{20 * Commands::SLOWNESS})
          expected[:running_ns] = now - since
          since = now
          sleep(#{0.03 * Commands::SLOWNESS})
          expected[:blocked_ns] = now - since
          since = now
          go << true
          # The hog needs a CPU before it can ask for the GVL. Nobody interrupts it then: it has the GVL until it is done.
          last = nil
          until working
            last = now
            Thread.pass
          end
          expected[:gvl_wait_ns] = now - last
          expected[:running_ns] += last - since
          since = now
          10_000.times { Object.new }
          expected[:running_ns] += now - since
        end
        hog.join
        puts [account.to_h, expected.transform_values { |it| (it * 1e9).round }, rest(account)].to_json
      RUBY
      expect(rest).to eq(0)
      expect(account["allocated_objects"]).to be_between(10_000, 10_030)
      # The hand-overs take part of the waits, and on a busy machine the thread waits for a CPU anywhere.
      # A collection comes while it runs, if at all.
      running = account.values_at("running_ns", "gc_ns").sum
      { "running_ns" => running, **account.slice("blocked_ns", "gvl_wait_ns") }.each do |state, time|
        expect(time).to be_within(8_000_000 * Commands::SLOWNESS).of(expected[state]), state
      end
      expect(account["cpu_ns"]).to be_between(1_000_000, running + (2_000_000 * Commands::SLOWNESS))
      expect(account["gvl_wait_ns"]).to be > 40_000_000
    end
  end

  it "counts its own objects beside another thread that makes some, and what others wait for it" do
    objects, blame, rest = told_of(<<~RUBY)
      others = Array.new(2) { Thread.new { loop { 100.times { Object.new }; Thread.pass } } }
      account = Rperf.account { 20.times { 1_000.times { Object.new }; Thread.pass } }
      others.each(&:kill).each(&:join)
      waiting = Thread.new { loop { sleep(0.0005) } }
      blamed = Rperf.account { compute(50) }
      waiting.kill
      blame = blamed.gvl_blame_ns.fdiv(blamed.wall_ns)
      puts [account.allocated_objects, blame, [account, blamed].sum { |it| rest(it).abs }].to_json
    RUBY
    # From 4.0 on Ruby counts objects in portions.
    expect(objects).to be_within(RUBY_VERSION < "4.0" ? 60 : 1_100).of(20_000)
    # One thread waits, and has slept for half a millisecond before.
    expect(blame).to be_between(0.5, 1)
    expect(rest).to eq(0)
  end

  it "has garbage collection for a state of its own" do
    account, rest = told_of(<<~RUBY)
      data = Array.new(200_000) { |i| "text \#{i}" }
      account = Rperf.account { 3.times { GC.start } }
      puts [account.to_h, rest(account)].to_json
    RUBY
    expect(rest).to eq(0)
    expect(account["gc_ns"]).to be > account["wall_ns"] / 2
  end

  it "is right whichever way the block ends, and nested" do
    rests, kinds, open = told_of(<<~RUBY)
      require "timeout"
      ended = []
      Rperf.on_account { |name, account| ended << [name, account] }
      Rperf.account("outer") do
        Rperf.account("inner") { sleep(0.001) }
        begin
          Rperf.account("raised") { raise "no" }
        rescue RuntimeError
          nil
        end
        catch(:done) { Rperf.account("thrown") { throw :done } }
        begin
          Timeout.timeout(0.02) { Rperf.account("timeout") { sleep } }
        rescue Timeout::Error
          nil
        end
        killed = Thread.new { Rperf.account("killed") { sleep } }
        Thread.pass until killed.status == "sleep"
        killed.kill.join
        Rperf.account("left") { break }
      end
      puts [ended.map { |_, it| rest(it) }, ended.map(&:first), ended.map { |_, it| it.open? }.uniq].to_json
    RUBY
    expect(kinds).to eq(%w[inner raised thrown timeout killed left outer])
    expect(rests).to all(eq(0))
    expect(open).to eq([false])
  end

  it "tells what passes while other fibers have control as suspended" do
    outer, inner, rests = told_of(<<~RUBY)
      inner = nil
      fiber = Fiber.new do
        inner = Rperf.account { sleep(0.02); Fiber.yield; compute(5) }
      end
      outer = Rperf.account { fiber.resume; compute(10); fiber.resume }
      puts [outer.to_h, inner.to_h, [rest(outer), rest(inner)]].to_json
    RUBY
    expect(rests).to eq([0, 0])
    expect(outer["suspended_ns"]).to be >= 25_000_000
    expect(outer["blocked_ns"]).to eq(0)
    expect(inner["blocked_ns"]).to be >= 20_000_000
    expect(inner["suspended_ns"]).to be_between(10_000_000, outer["wall_ns"])
  end

  it "tells what has passed so far, on its own thread and on others" do
    inside, outside, at_end = told_of(<<~RUBY)
      account = nil
      inside = nil
      thread = Thread.new do
        Rperf.account do |it|
          compute(5)
          inside = it.wall_ns
          account = it
          sleep
        end
      end
      Thread.pass until account && thread.status == "sleep"
      sleep 0.02
      outside = [account.open?, account.blocked_ns, rest(account)]
      thread.kill.join
      puts [inside, outside, [account.open?, rest(account)]].to_json
    RUBY
    expect(inside).to be >= 5_000_000
    expect(outside.first(2)).to match([true, be >= 20_000_000])
    expect(at_end).to eq([false, 0])
  end

  it "says nothing in a forked child, whose own accounts are right" do
    out = told_of(<<~RUBY)
      require "json"
      read, write = IO.pipe
      account = Rperf.account do |open|
        pid = fork do
          own = Rperf.account { sleep(0.01) }
          write.puts [open.wall_ns, own.blocked_ns, rest(own)].to_json
        end
        Process.wait(pid)
      end
      write.close
      puts [*JSON.parse(read.read), rest(account)].to_json
    RUBY
    expect(out).to match([nil, be >= 10_000_000, 0, 0])
  end

  it "takes nothing of a session that runs, and ends with none" do
    function, running, rests, running_after = told_of(<<~RUBY)
      Rperf.start(mode: :account)
      rests = []
      Rperf.on_account { |_, account| rests << rest(account) }
      account = Rperf.account("a") { compute(1) }
      Rperf.start(mode: :wall, frequency: 1000)
      Rperf.account("a") { compute(50) }
      profile = Rperf.stop
      Rperf.account("a") { compute(1) }
      running = [Rperf.running?, Rperf.stop, Rperf.accounts["a"][:count], Rperf.stop(mode: :account)["a"][:count]]
      puts [profile.top(limit: 1, sort: :total).first[:total], running, rests, Rperf.accounts].to_json
    RUBY
    expect(function).to be > 40_000_000
    expect(running).to eq([false, nil, 3, 3])
    expect(rests).to eq([0, 0, 0])
    expect(running_after).to eq({})
  end

  it "knows quantiles by name" do
    accounts, at_end = told_of(<<~RUBY)
      at_end = Rperf.start(mode: :account) do
        100.times { |i| Rperf.account(i.even? ? "even" : "odd") { i < 90 ? nil : sleep(0.005) } }
        Rperf.account { nil }
        $accounts = Rperf.accounts
      end
      puts [$accounts, at_end == $accounts].to_json
    RUBY
    expect(at_end).to be(true)
    expect(accounts.keys).to match_array(%w[even odd])
    even = accounts.fetch("even")
    expect(even["count"]).to eq(50)
    expect(even["wall_ns"]["p50"]).to be < 5_000_000
    expect(even["wall_ns"]["p99"]).to be >= 4_700_000
    expect(even["wall_ns"]["max"]).to be >= 5_000_000
    expect(even["blocked_ns"]["sum"]).to be >= 25_000_000
  end

  it "is as its text says" do
    text, timing, unknown = told_of(<<~RUBY)
      account = Rperf.account { sleep(0.0101) }
      account.queue_ns = 12_345_678
      child = nil
      Rperf.account { |it| child = IO.popen("-") || (print it.to_s, it.inspect; exit!) }
      puts [account.to_s, account.server_timing, child.read].to_json
    RUBY
    other_states = /(\d+\.\d running \+ )?(\d+\.\d GVL wait \+ )?/
    expect(text).to match(/\A\d\d\.\d ms = #{other_states}\d\d\.\d blocked; \d objects; queue 12\.3 ms\z/)
    others = /(run;dur=[\d.]+, )?(gvl;dur=[\d.]+, )?/
    expect(timing).to match(/\A#{others}blocked;dur=\d\d\.\d, cpu;dur=[\d.]+, queue;dur=12\.3\z/)
    expect(unknown).to eq("unknown#<Rperf::Account unknown>")
  end

  it "runs the block alone in another Ractor, whose objects nobody can tell from the others" do
    nothing, value, account, rest = told_of(<<~RUBY, "-W:no-experimental")
      ractor = Ractor.new { ran = false; found = [Rperf.account { ran = true }, ran]; Ractor.receive; found }
      account = Rperf.account { sleep(0.01) }
      ractor.send(true)
      nothing, value = ractor.respond_to?(:value) ? ractor.value : ractor.take
      puts [nothing, value, account.to_h, rest(account)].to_json
    RUBY
    expect([nothing, value, rest]).to eq([nil, true, 0])
    expect(account).to include("allocated_objects" => nil, "gvl_blame_ns" => nil, "wall_ns" => be >= 10_000_000)
  end

  it "refuses what isn't possible" do
    messages = told_of(<<~RUBY)
      message = ->(&block) { block.call && nil rescue "\#{$!.class}: \#{$!.message}" }
      puts [message.call { Rperf.account }, message.call { Rperf.on_account },
            message.call { Rperf.start(mode: :account, frequency: 1) },
            message.call { Rperf.start(mode: :account); Rperf.start(mode: "account") },
            message.call { Rperf.stop(mode: :wall) }].to_json
    RUBY
    expect(messages).to eq(["ArgumentError: Rperf.account needs a block",
                            "ArgumentError: Rperf.on_account needs a block",
                            "ArgumentError: mode: :account takes no frequency:, as it takes no samples",
                            "Rperf::Error: accounts are on already; Rperf.stop(mode: :account) ends them",
                            "ArgumentError: mode: must be nil or :account, not :wall"])
  end

  it "tells once that a block of on_account fails, and goes on" do
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", <<~RUBY)
      Rperf.on_account { raise "broken" }
      Rperf.on_account { |name, _| puts name }
      2.times { |i| Rperf.account("n\#{i}") { nil } }
    RUBY
    expect(outcome.stdout).to eq("n0\nn1\n")
    expect(outcome.stderr).to eq("rperf: a block of Rperf.on_account failed: broken (RuntimeError)\n")
  end

  it "begins with the program and its children where the environment says so" do
    env = { "RPERF_ENABLED" => "1", "RPERF_MODE" => "account", "RUBYOPT" => "-rrperf -I#{Commands::ROOT}/lib" }
    program = 'Rperf.account("a") { nil }; print Rperf.accounts["a"][:count], Rperf.running?, File.exist?("rperf.data")'
    accounts = told(<<~RUBY, env:)
      puts [IO.popen([#{ruby.inspect}, "-e", #{program.inspect}], &:read), Rperf.start(mode: :account)].to_json rescue
        puts [IO.popen([#{ruby.inspect}, "-e", #{program.inspect}], &:read), $!.class].to_json
    RUBY
    expect(accounts).to eq(%w[1falsefalse Rperf::Error])
    refused = run(ruby, "-e", "puts 1", env: env.merge("RPERF_FREQUENCY" => "99"))
    expect([refused.stdout, refused.stderr])
      .to eq(["1\n", "rperf: RPERF_MODE=account takes no RPERF_FREQUENCY; running without profiling\n"])
  end

  it "leaves exceptions, values and interrupts to the program, whatever names and handlers it has" do
    results = told_of(<<~RUBY)
      require "timeout"
      Rperf.start(mode: :account)
      stop = Class.new(StandardError)
      results = []
      results << Rperf.account(:sym) { nil }.name
      begin
        Rperf.account("\\xff") { raise "mine" }
      rescue => e
        results << e.message
      end
      slow = true
      Rperf.on_account { |name, _| sleep(0.2) if slow }
      begin
        Timeout.timeout(0.05, stop) { Rperf.account("x") { nil }; sleep(5); results << "lost" }
      rescue stop
        results << "stopped"
      end
      slow = false
      calls = 0
      Rperf.on_account { calls += 1; Rperf.account("inner") { nil } }
      Rperf.account("outer") { nil }
      results << calls
      told = 0
      Rperf.on_account { |_, account| told += 1 if account.wall_ns.nil? }
      Rperf.account { Process.wait(fork { exit!(told) }) }
      Rperf.account { |_| pid = fork; (exit!(told) unless pid) || Process.wait(pid) }
      results << told << Rperf.accounts.keys.sort
      puts results.to_json
    RUBY
    expect(results).to eq(["sym", "mine", "stopped", 1, 0, %w[inner outer sym x] + ["\uFFFD"]])
  end

  it "lets processes fork while threads hand the GVL over, and children begin sessions" do
    statuses = told_of(<<~RUBY)
      threads = Array.new(20) { Thread.new { loop { Rperf.account { sleep(0.0001) } } } }
      statuses = Array.new(40) do
        pid = fork { Rperf.start(mode: :wall); Rperf.account { nil }; Rperf.stop; exit!(7) }
        deadline = now + 20
        sleep(0.001) until (done = Process.wait(pid, Process::WNOHANG)) || now > deadline
        Process.kill(:KILL, pid) unless done
        done ? $?.exitstatus : "hung"
      end
      threads.each(&:kill)
      puts statuses.tally.to_json
    RUBY
    expect(statuses).to eq("7" => 40)
  end

  it "knows who waits among a thousand threads, and beside other Ractors" do
    blocked, wait, alone = told_of(<<~RUBY, "-W:no-experimental")
      deadline = now + 1.0
      accounts = Array.new(1_000) { Thread.new { Rperf.account { Thread.pass while now < deadline } } }.map(&:value)
      sums = %i[blocked_ns gvl_wait_ns].map { |key| accounts.sum { |it| it.to_h[key] } }
      ractor = Ractor.new { Ractor.receive }
      queue = Queue.new
      waiting = Thread.new { Rperf.account { queue.pop } }
      sleep(0.01) until waiting.stop?
      queue << true
      compute(60)
      beside = waiting.value
      ractor.send(true)
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      sleep(0.01) until Ractor.count == 1
      after = Rperf.account { 100.times { Object.new } }
      puts [*sums, [beside.gvl_wait_ns, beside.allocated_objects, after.allocated_objects]].to_json
    RUBY
    expect(blocked).to be < wait / 20
    expect(alone).to match([be > 40_000_000, nil, be_between(100, 1_100)])
  end

  it "has no CPU time where native threads run several Ruby threads" do
    cpu = told_of("puts [Rperf.account { sleep(0.01) }.cpu_ns, Rperf.account { nil }.wall_ns.class].to_json",
                  env: { "RUBY_MN_THREADS" => "1" })
    expect(cpu).to eq([nil, "Integer"])
  end

  it "adds up among 60 threads that come and go, with collections that compact" do
    rests, count = told_of(<<~RUBY)
      rests = Queue.new
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      threads = Array.new(60) do |i|
        Thread.new do
          20.times do
            account = Rperf.account do
              Array.new(200) { "text" }
              i.even? ? sleep(0.0005) : Thread.pass
              Fiber.new { Rperf.account { Thread.pass } }.resume if i % 3 == 0
            end
            rests << rest(account)
          end
        end
      end
      GC.start
      threads.each(&:join)
      puts [rests.size.times.map { rests.pop }.uniq, Rperf.account { nil }.wall_ns > 0].to_json
    RUBY
    expect([rests, count]).to eq([[0], true])
  end

  # QEMU keeps memory for each thread.
  it "takes no more memory for fibers that are given up with an open account, nor for threads that have ended",
     emulated: false do
    grown, rest = told_of(<<~RUBY)
      def resident = Integer(File.read("/proc/self/status")[/VmRSS:\\s+(\\d+)/, 1])
      give_up = -> { Fiber.new { Rperf.account { Fiber.yield } }.resume }
      end_thread = -> { Thread.new { Rperf.account { nil } }.join }
      work = -> { 2_000.times { give_up.call }; 500.times { end_thread.call }; GC.start }
      3.times { work.call }
      before = resident
      3.times { work.call }
      puts [resident - before, rest(Rperf.account { sleep(0.001) })].to_json
    RUBY
    expect(grown).to be < 8_000
    expect(rest).to eq(0)
  end
end
