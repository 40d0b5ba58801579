# frozen_string_literal: true

# Programs in which all threads wait.
RSpec.describe "A program that waits", vm: true, if: Gem::Platform.local.os == "linux" do
  include Ports

  # Ways to wait for two seconds. `later` ends them from another thread, which waits, too.
  ways = <<~'RUBY'
    require "monitor"
    require "socket"
    require "timeout"
    Warning[:experimental] = false
    later = ->(&act) { Thread.new { sleep 2; act.call } }
    is_held = ->(lock) { lock.is_a?(Monitor) ? lock.mon_locked? : lock.locked? }
    hold = ->(lock) { Thread.new { lock.synchronize { sleep 2 } }; sleep 0.01 until is_held.call(lock) }
    in_lock = ->(lock = Mutex.new, &act) { lock.synchronize { act.call(lock) } }
    again = lambda do |&act|
      act.call
    rescue Errno::EAGAIN
      retry
    end
    fill = ->(pipe) { pipe.write_nonblock("x" * (1 << 16)) while true rescue IO::WaitWritable }
    WAITS = {
      # It says whole seconds, of which two may be begun and three touched.
      sleep: [2..3, -> { sleep 2 }],
      stop: [nil, -> { main = Thread.current; later.call { main.wakeup }; Thread.stop }],
      queue: [nil, -> { Queue.new.pop(timeout: 2) }],
      sized: [nil, -> { SizedQueue.new(1).tap { _1.push(1) }.push(2, timeout: 2) }],
      join: [2, -> { Thread.new { sleep 2; 2 }.join.value }],
      mutex: [3, -> { lock = Mutex.new; hold.call(lock); in_lock.call(lock) { 3 } }],
      condition: [4, -> { in_lock.call { |lock| ConditionVariable.new.wait(lock, 2); 4 } }],
      signalled: [5, -> { it = ConditionVariable.new; later.call { it.signal }; in_lock.call { |lock| it.wait(lock); 5 } }],
      monitor: [6, -> { it = Monitor.new; it.synchronize { it.new_cond.wait(2); 6 } }],
      mutex_sleep: [nil, -> { in_lock.call { |lock| lock.sleep(2) } }],
      select: [nil, -> { IO.select([IO.pipe.first], nil, nil, 2) }],
      wait_readable: [nil, -> { IO.pipe.first.wait_readable(2) }],
      read: ["x", -> { it, other = IO.pipe; later.call { other.write("x"); other.close }; it.read }],
      gets: ["x", -> { it, other = IO.pipe; later.call { other.puts("x") }; it.gets.chomp }],
      readpartial: ["x", -> { it, other = IO.pipe; later.call { other.write("x") }; it.readpartial(9) }],
      write: [1 << 18, -> { other, it = IO.pipe; later.call { other.read(1 << 20) }; it.write("x" * (1 << 18)) }],
      accept: [7, -> { it = TCPServer.new("127.0.0.1", 0); later.call { TCPSocket.new(*it.addr.values_at(3, 1)) }; it.accept; 7 }],
      recv: ["x", -> { it, other = UNIXSocket.pair; later.call { other.write("x") }; it.recv(1) }],
      flock: [0, -> { it = File.open("lock", "w"); it.flock(2); later.call { it.close }; File.open("lock").flock(2) }],
      popen: ["x", -> { IO.popen("sleep 2; echo x").read.chomp }],
      system: [true, -> { system("sleep 2") }],
      child: [true, -> { Process.wait(spawn("sleep", "2")); $?.success? }],
      fifo: ["x", -> { File.mkfifo("fifo"); later.call { File.write("fifo", "x") }; File.read("fifo") }],
      udp: ["x", -> { it = Addrinfo.udp("127.0.0.1", 0).bind; later.call { it.local_address.connect.send("x", 0) }; it.recv(1) }],
      recvmsg: ["x", -> { it, other = UNIXSocket.pair; later.call { other.write("x") }; it.recvmsg[0] }],
      recv_io: [true, -> { it, other = UNIXSocket.pair; later.call { other.send_io($stdin) }; it.recv_io.is_a?(IO) }],
      copied: [1, -> { it, other = IO.pipe; later.call { other.write("x"); other.close }; out = IO.pipe; IO.copy_stream(it, out[1]) }],
      waitpid2: [0, -> { Process.waitpid2(spawn("sleep", "2")).last.exitstatus }],
      ractor: [9, -> { it = Ractor.new { sleep 2; 9 }; it.respond_to?(:value) ? it.value : it.take }],
      timeout: [8, -> { Timeout.timeout(2) { sleep } rescue 8 }],
      masked: [2..3, -> { Thread.handle_interrupt(Object => :never) { sleep 2 } }],
      trap: [9, -> { trap(:USR1) { sleep 2 }; Process.kill(:USR1, $$); sleep 0.01; 9 }],
      pushed: ["x", -> { it = Queue.new; later.call { it << "x" }; it.pop }],
      monitor_enter: [7, -> { it = Monitor.new; hold.call(it); it.synchronize { 7 } }],
      received: ["x", -> { later.call { Ractor.current.send("x") }; Ractor.receive }],
      scheduled: [8, -> { Fiber.set_scheduler(FiberScheduler.new); Fiber.schedule { sleep 2 }; Fiber.set_scheduler(nil) || 8 }],
      # What the guide names: they raise EAGAIN, and can be called again.
      sysread: ["x", -> { it, other = IO.pipe; later.call { other.write("x") }; again.call { it.sysread(1) } }],
      syswrite: [1, -> { other, it = IO.pipe; fill.call(it); later.call { other.readpartial(1 << 16) }; again.call { it.syswrite("x") } }]
    }
    # A call that no interrupt reaches: it isn't cut short, and there are no stacks of it.
    WAITS[:unreachable] = [0, -> { SLEEP.call(2) }] if defined?(SLEEP)
  RUBY
  before = <<~RUBY
    require "json"
    require #{File.join(__dir__, "../support/fiber_scheduler").dump}
    begin
      require "fiddle"
      SLEEP = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
    rescue LoadError
      nil
    end
  RUBY

  # Children of one program, each with a port, whose main threads wait. Each writes down what came of it. Those of
  # the second round have a client that wants a session; these are a few, unless there is time for all.
  children = <<~'RUBY'
    signals = -> { File.read("/proc/self/status")[/^SigBlk.*^SigCgt.*?$/m] }
    before = signals.call
    Rperf.listen
    clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    attached = ENV["LONG"] ? WAITS.to_a : WAITS.to_a.sample(16)
    puts [*WAITS.keys, *attached.map { |name,| "#{name}_attached" }].join(" ")
    # Not too many at a time: each is to be woken in its time, on a busy machine, too.
    parts = [[WAITS.to_a, ""], [attached, "_attached"]].flat_map { |all, kind| all.each_slice(16).map { [_1, kind] } }
    parts.each do |some, kind|
      some.each do |name, (expected, wait)|
        fork do
          told = File.expand_path("#{name}#{kind}")
          Dir.mkdir("#{told}.files")
          Dir.chdir("#{told}.files")
          File.write("#{told}.new", Rperf.listen)
          File.rename("#{told}.new", "#{told}.path")
          began = clock.call
          value = wait.call
          seconds = clock.call - began
          File.write("#{told}.new", JSON.dump([expected === value, seconds, signals.call == before]))
          File.rename("#{told}.new", "#{told}.result")
        end
      end
      Process.waitall
    end
    sleep
  RUBY

  # What the port says until the wait is over.
  def answers_of(wait, answers = [])
    path, result = %w[path result].map { |kind| path_to("#{wait}.#{kind}") }
    wait_until("port") { File.exist?(path) }
    client = attached(File.read(path)) if wait.end_with?("_attached")
    answers << ask(File.read(path), "/v1/stacks").last until File.exist?(result)
    answers
  rescue SystemCallError, NoMethodError
    answers # It has just ended.
  ensure
    client&.close
  end

  # A client that has asked for a session, which begins as soon as that is possible.
  def attached(path)
    UNIXSocket.open(path).tap { |port| port.write("POST /v1/session HTTP/1.1\r\n\r\n") }
  end

  # It has waited for as long as without clients, and to the same end.
  def expect_wait(name, answers)
    wait_until("end of #{name}") { File.size?(path_to("#{name}.result")) }
    is_same_value, seconds, are_same_signals = JSON.parse(File.read(path_to("#{name}.result")))
    # It may have had to wait for a CPU on a busy machine.
    expect([name, is_same_value, seconds]).to match([name, true, be_between(1.98, 15)])
    # A session that has begun before handles its own signals, and has a helper that needs no waking.
    is_attached = name.end_with?("_attached")
    expect([name, are_same_signals]).to eq([name, true]) unless is_attached
    return if name.start_with?("unreachable")

    # A scheduler's fiber may run as the first question comes.
    found = answers.select { |answer| answer["source"] == "vm" && (is_attached || answer["woken"]) }
    outermost = found.map { |answer| outermost_frame(answer) }
    expect([name, outermost]).to match([name, include("<main>")])
  end

  def outermost_frame(answer)
    frame = answer.dig("threads", 0, "frames")&.last
    frame && answer["frames"].fetch(frame)["name"]
  end

  # It may not wait yet when it is asked.
  def wait_until_woken(path)
    wait_until("waking") { ask(path, "/v1/stacks").last.values_at("source", "woken") == ["vm", true] }
  end

  # Until its main thread sleeps, and has gone on sleeping.
  def wait_until_still(pid)
    wait_until("sleep") do
      before, after = Array.new(2) do |i|
        sleep 0.2 * i
        File.read("/proc/#{pid}/task/#{pid}/status").scan(/^(?:State|\w*ctxt_switches):.*/)
      end
      before == after && before.first.include?("S (")
    end
  end

  it "answers with its stacks, and waits on: no wait ends early, and no signal is handled in another way" do
    listening("#{before}#{ways}#{children}", env: Commands::LONG ? { "LONG" => "1" } : {}) do |program|
      program.lines.last.split.partition { |name| !name.end_with?("_attached") }.each do |waits|
        answers = waits.to_h { |name| [name, Thread.new { answers_of(name) }] }.transform_values(&:value)
        answers.each { |name, those| expect_wait(name, those) }
      end
    end
  end

  it "says that it was woken, and isn't if that is unwanted" do
    idle = "puts Rperf.listen; Rperf.start(mode: :wall); sleep"
    listening(idle) do |program|
      wait_until_woken(program.lines.first)
      expect(rperf("stacks", program.pid.to_s).stdout).to include("main thread was woken").and include("Kernel#sleep")
      taken = rperf("snapshot", program.pid.to_s, "-o", "p.pb.gz")
      expect([taken.status.exitstatus, taken.stderr]).to match([0, /^rperf: no thread of \d+ ran, so its main thread/])
      listening(idle, env: { "RPERF_LISTEN" => "1", "RPERF_LISTEN_WAKE" => "0" }) do |other|
        outcomes = [[program, "stacks", "--no-wake"], [program, "snapshot", "--no-wake"], [other, "stacks"]]
        outcomes.map! { |it, *words| Thread.new { rperf(*words, it.pid.to_s, limit: 30) } }
        outcomes.map(&:value).each do |outcome|
          expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /the VM doesn't answer: no Ruby code runs/])
        end
      end
    end
  end

  it "isn't woken by a signal that the program has come to handle" do
    code = <<~RUBY
      path = Rperf.listen
      trap(43) { File.write("trapped", "") }
      File.mkfifo("fifo")
      Thread.new do
        File.read("fifo")
        [*Signal.list.values, *34..64].uniq.each { |number| trap(number) { File.write("trapped", "") } rescue nil }
        File.write("all", "")
      end
      puts path
      sleep
    RUBY
    listening(code) do |program|
      wait_until_woken(program.lines.first)
      File.write(path_to("fifo"), "")
      wait_until("traps") { File.exist?(path_to("all")) }
      # The thread that has set the traps runs for a moment still.
      answer = nil
      wait_until("program that waits") do
        (answer = ask(program.lines.first, "/v1/stacks").last)["source"] == "system"
      end
      expect(answer).to include("woken" => false)
      expect(File.exist?(path_to("trapped"))).to be(false)
    end
  end

  it "answers at once with a helper of its own, as do its children" do
    code = <<~'RUBY'
      idle = -> { Thread.new { Queue.new.pop }; sleep 0.01; sleep }
      fork { File.write("child", Rperf.listen); idle.call }
      puts Rperf.listen
      idle.call
    RUBY
    listening(code, env: { "RPERF_LISTEN" => "1", "RPERF_LISTEN_HELPER" => "1" }) do |program|
      wait_until("child") { File.exist?(path_to("child")) && !File.empty?(path_to("child")) }
      [program.lines.first, File.read(path_to("child"))].each do |path|
        answers = Array.new(20) { ask(path, "/v1/stacks").last }
        expect(answers.map { |answer| answer.values_at("source", "woken") }.uniq).to eq([["vm", false]])
        expect(answers.map { |answer| answer["threads"].size }.uniq).to eq([2])
        expect(answers.map { |answer| answer["elapsed_ns"] }.min).to be < 20_000_000
      end
      expect(rperf("attach", program.pid.to_s, "--duration", "0.3", "-o", "p.pb.gz").status.exitstatus).to eq(0)
      expect(ask(program.lines.first, "/v1/stacks").last["source"]).to eq("vm")
    end
  end

  it "ends with its helper, also where that was made while interrupts were masked" do
    code = <<~'RUBY'
      masked = ->(&act) { Thread.handle_interrupt(Object => :never, &act) }
      helped = -> { sleep 0.01 until Thread.list.any? { |thread| thread.name == "rperf" } }
      masked.call { Rperf.listen(helper: true) }
      helped.call
      masked.call { fork { helped.call } }
      Process.wait
      puts $?.exitstatus
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, limit: 20)
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["0\n", "", 0])
  end

  it "has its port without a helper if there can't be one, and says so" do
    code = "ThreadGroup::Default.freeze; puts Rperf.listen(helper: true), Dir[Rperf.listen]"
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code)
    expect([outcome.stdout.lines.size, outcome.stdout.lines.uniq.size, outcome.stderr])
      .to match([2, 1, /\Arperf: the port has no helper: .* \(a frozen ThreadGroup, .*\); running without it\n\z/])
  end

  it "can go on without the helper, which the program may end" do
    code = <<~'RUBY'
      path = Rperf.listen(helper: true)
      helper = Thread.list.find { |thread| thread.name == "rperf" } until helper
      raise unless helper.join(1).equal?(helper) && helper.value.nil?
      helper.kill
      sleep 0.01 while helper.alive?
      Warning[:experimental] = false
      Ractor.new { Ractor.receive }
      puts path
      sleep
    RUBY
    listening(code) do |program|
      # The first answer makes a helper anew, so no later one needs a waking.
      wait_until_still(program.pid)
      wait_until_woken(program.lines.first)
      expect(ask(program.lines.first, "/v1/stacks").last["other_ractors"]).to eq(1)
      expect(rperf("stacks", program.pid.to_s).stdout)
        .to include(": 1 thread, Ruby").and include("The threads of one other Ractor are not shown.")
    end
  end
end
