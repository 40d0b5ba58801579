# frozen_string_literal: true

RSpec.describe "rperf stacks", vm: true do
  include Ports

  # QEMU waits by a system call of this machine, which is another one by its number on arm64.
  woken = Commands::SLOWNESS == 1 ? "waits to be woken" : "accept"

  # The answer, with the threads by their names.
  def stacks_of(program)
    outcome = rperf("stacks", "--json", program.pid.to_s)
    answer = JSON.parse(outcome.stdout)
    [answer, answer["threads"].to_h { |thread| [thread["name"], thread] }, outcome]
  end

  def path_of(program) = program.lines.first

  # A program whose main thread works.
  def working(code = "", &)
    work = "def work = loop { 100.times(&:to_s) }"
    listening("#{work}\nThread.current.name = 'main'\n#{code}\nputs Rperf.listen\nwork", &)
  end

  it "shows what each thread does" do
    code = <<~RUBY
      queue = Queue.new
      2.times { |i| Thread.new { Thread.current.name = "pool \#{i}"; queue.pop } }
    RUBY
    working(code) do |program|
      answer, threads, outcome = stacks_of(program)
      # On a busy machine it may just have to wait for its turn.
      wait_until("a main thread that runs") do
        threads["main"]["state"] == "running" || ((answer, threads, outcome = stacks_of(program)) && false)
      end
      expect([answer["source"], answer["note"], outcome.status.exitstatus]).to eq(["vm", nil, 0])
      expect(threads.keys).to contain_exactly("main", "pool 0", "pool 1")
      expect(threads["main"]).to include("state" => "running", "number" => 1)
      expect(threads["main"]["frames"].map { |frame| frame["name"] }).to include("Object#work", "<main>")
      expect(threads["pool 0"]).to include("state" => "blocked")
      expect(threads["pool 0"]["frames"].first["name"]).to eq("Thread::Queue#pop")
      page = rperf("stacks", program.pid.to_s).stdout
      expect(page).to match(/\A#{program.pid} .*: 3 threads, Ruby #{RUBY_VERSION}, taken in \d+\.\d ms$/)
      expect(page).to match(/^#2 "pool 0" tid \d+, #3 "pool 1" tid \d+: 2 threads with one stack +blocked/)
      expect(page.scan("Thread::Queue#pop").size).to eq(1)
    end
  end

  describe "with fibers" do
    # What is said of them, and how many have a stack, by its state and the names of its frames.
    def fibers_of(program)
      answer = ask(path_of(program), "/v1/stacks?fibers=1").last
      expect(answer["source"]).to eq("vm")
      # How deep a block is depends on how the program was begun.
      names = answer["frames"].map { |frame| frame["name"].sub(/\Ablock \(.* levels\) in/, "block in") }
      counts = answer["fibers"]["stacks"].each_with_object(Hash.new(0)) do |stack, sums|
        sums[[stack["state"], *names.values_at(*stack["frames"])]] += stack["count"]
      end
      [answer["fibers"], counts]
    end

    # Has the program go on to what waits for the file.
    def has_done(name)
      FileUtils.touch(path_to(name))
      wait_until(name) { File.exist?(path_to("#{name}.done")) }
    end

    it "shows those that are in no thread's stack, bounds them, and says where Ruby lists none" do
      code = <<~'RUBY'
        Warning[:experimental] = false
        def rest = Fiber.yield
        def after(name) = Thread.new { sleep 0.01 until File.exist?(name); yield; File.write("#{name}.done", "") }
        RAN = ->(*) { File.write("ran", "") or raise }
        METHODS = %i[to_s alive? backtrace_locations equal? class singleton_class hash inspect == method_missing]
        Fiber.class_eval { METHODS.each { |name| define_method(name, &RAN) } }
        class Odd < Fiber
          %i[inspect name singleton_class hash equal? == instance_method method_missing].each do |name|
            define_singleton_method(name, &RAN)
          end
        end
        $odd = Odd.new { rest }.tap(&:resume)
        class Named < Fiber
          define_singleton_method(:to_s, &RAN)
        end
        class Unnamed < Fiber
          singleton_class.undef_method(:to_s)
        end
        $named = [Named, Unnamed].map { |type| type.new { rest }.tap(&:resume) }
        $kept = Array.new(3) { Fiber.new { rest }.tap(&:resume) }
        $kept.push(Fiber.new { work }, Fiber.new { 1 }.tap(&:resume), Fiber.allocate, [1].each.tap(&:next))
        $kept << Fiber.new { eval("rest", binding, "a\xff.erb", -5) }.tap(&:resume)
        waiting = Thread.new { Fiber.new { Fiber.new { sleep }.resume }.resume }
        Thread.pass until waiting.stop?
        after("other") { Module.prepend(Module.new { define_method(:to_s, &RAN) }) }
        after("many") { $kept = Array.new(10_050) { Fiber.new { 1 } } }
        after("ractor") { Ractor.new { Ractor.receive } }
      RUBY
      working(code) do |program|
        answer, counts = fibers_of(program)
        block = "block in <main>"
        expect(counts).to eq(
          ["suspended", "Fiber.yield", "Object#rest", block] => 4,
          # The thread's own, too.
          ["suspended by resuming", "Fiber#resume", block] => 2,
          ["suspended", "Fiber.yield", "Object#rest", block, "Kernel#eval", block] => 1,
          ["suspended", "Array#each", "Enumerator#each"] => 1, ["created"] => 1
        )
        # Of some only code of the program would say more.
        expect(answer).to include("note" => nil, "left_out" => 2)
        expect(answer["walk_ns"]).to be_between(1, answer["elapsed_ns"])
        page = rperf("stacks", "--fibers", program.pid.to_s).stdout
        expect(page).to match(/^\d fibers beside the threads, taken in [\d.]+ ms, with a walk of the heap of [\d.]+ ms/)
        expect(page).to match(/^2 more were left out: .* the program's own `to_s` for them\.$/)
        expect(page).to match(/^1 fiber, block at -e:\d+ +created$/)
        expect(page).to match(/^3 fibers +suspended\n    Fiber\.yield +-e:\d+$/)
        expect(stacks_of(program).first["fibers"]).to be_nil
        has_done("many")
        answer, counts = fibers_of(program)
        expect(answer["left_out"]).to be >= 50
        expect(counts.values.sum + answer["left_out"]).to be_between(10_050, 10_080)
        has_done("other")
        answer, counts = fibers_of(program)
        expect([answer["note"], counts]).to eq([nil, {}])
        expect(answer["left_out"]).to be >= 10_050
        expect(File).not_to exist(path_to("ran"))
        has_done("ractor")
        # Where each Ractor has its own objects, Ruby goes on to list the main one's.
        lists_own = Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("4.1")
        note, left_out = lists_own ? [nil, be >= 10_050] : [/made a Ractor/, 0]
        expect(fibers_of(program)).to match([include("note" => note, "left_out" => left_out), {}])
        page = rperf("stacks", "--fibers", program.pid.to_s).stdout
        expect(page.include?("Ruby lists no fibers of a program")).to be(!lists_own)
      end
    end

    it "takes them by Ruby's methods only, also if rperf is loaded after the program's own" do
      own = ["Fiber.prepend(Module.new { def to_s = raise })", "Fiber.define_method(:to_s) { raise }"]
      taken = own.map do |code|
        code += <<~'RUBY'
          ; require "rperf"
          $kept = Fiber.new { Fiber.yield }.tap(&:resume)
          taking = Rperf.module_eval("Helper").fiber_stacks
          taking.size.times { |place| taking.look_at(place) }
          note, left_out, names, stacks = taking.to_a
          p "#{note} #{left_out} #{stacks.map { |stack| stack[1] }} #{names.map(&:last).uniq.join}"
        RUBY
        write_file("own.rb", code)
        run(ruby, "-I#{Commands::ROOT}/lib", "own.rb").stdout
      end
      # Paths are what they are in threads' stacks.
      path = File.realpath(path_to("own.rb"))
      expect(taken).to match(
        [/\A" 0 .*suspended.* #{Regexp.escape(path)}"/, /\A"No fibers are shown: methods of the program .* 0 \[\] "/]
      )
    end

    it "finds them while they come, go and move", emulated: false do
      code = <<~RUBY
        def deep(depth) = depth.zero? ? Fiber.yield : deep(depth - 1)
        Thread.new { loop { sleep 0.001; Array.new(50) { |i| Fiber.new { deep(i) }.tap(&:resume) }.first(25).each(&:resume) } }
        Thread.new { loop { sleep 0.001; Thread.new { Fiber.new { Fiber.yield }.resume }.join } }
        Thread.new { loop { sleep 0.1; GC.compact; GC.stress = true; 3.times(&:to_s); GC.stress = false } }
      RUBY
      listening("#{code}\nputs Rperf.listen\nsleep") do |program|
        answers = Array.new(20) { ask(path_of(program), "/v1/stacks?fibers=1").last }
        notes = answers.map { |answer| answer["note"] || answer["fibers"]["note"] }
        # A loaded machine may be too slow for one beside the collections.
        expect(notes.compact.size).to be <= 2
        expect(ask(path_of(program)).first).to eq(200)
      end
    end
  end

  it "says at which address or for which peer a thread waits", emulated: false, if: File.exist?("/proc/self/syscall") do
    code = <<~'RUBY'
      require "socket"
      def waiting(expected, &) = Thread.new(&).name = expected
      server = TCPServer.new("127.0.0.1", 0)
      address = "127.0.0.1:#{server.addr[1]}"
      $client = TCPSocket.new("127.0.0.1", server.addr[1])
      $peer = server.accept
      waiting(": #{address}") { $client.read(1) }
      waiting(": listens at #{address}") { server.accept }
      pipe, $writer = IO.pipe
      other = TCPServer.new("127.0.0.1", 0)
      waiting("select: #{File.readlink("/proc/self/fd/#{pipe.fileno}")}, listens at 127.0.0.1:#{other.addr[1]}") do
        IO.select([pipe, other])
      end
      unix = UNIXServer.new("it.sock")
      waiting(": listens at it.sock") { unix.accept }
      udp = UDPSocket.new.tap { |it| it.bind("127.0.0.1", 0) }
      waiting(": socket at 127.0.0.1:#{udp.addr[1]}") { udp.recv(1) }
      # The kernel takes in no more of them than it has room for.
      full = Socket.new(:INET, :STREAM).tap { |it| it.bind(Addrinfo.tcp("127.0.0.1", 0)) && it.listen(0) }
      peer = full.local_address
      clients = Array.new(4) { Socket.new(:INET, :STREAM).tap { |it| it.connect_nonblock(peer, exception: false) } }
      waiting("select: connects to 127.0.0.1:#{peer.ip_port}") { IO.select(nil, clients.last(1)) }
    RUBY
    working(code) do |program|
      wait_until("all waits") do
        others = stacks_of(program)[1].except("main").transform_values { |thread| thread["waits_in"] }
        others.size == 6 && others.all? { |name, waits_in| waits_in&.end_with?(name) }
      end
    end
  end

  it "has them of many threads, while some compute" do
    deep = "def deep(depth) = depth.zero? ? sleep : deep(depth - 1)"
    working("#{deep}\n500.times { Thread.new { deep(20) } }\n3.times { Thread.new { work } }") do |program|
      answer, _, outcome = stacks_of(program)
      expect([answer["source"], outcome.status.exitstatus]).to eq(["vm", 0])
      expect(answer["threads"].size).to eq(504)
      # Nobody has to be woken where threads run.
      expect(answer["woken"]).to be(false)
      states = answer["threads"].group_by { |it| it["frames"].any? { |frame| frame["name"] == "Object#work" } }
      expect(states.transform_values(&:size)).to eq(true => 4, false => 500)
      expect(states[true].map { |it| it["state"] }.uniq - ["running", "waits for the GVL"]).to eq([])
    end
  end

  it "says which thread of the profile it is, and its labels" do
    working("Rperf.start(mode: :wall)\nThread.new { Rperf.label(job: 'a \e[1m') { sleep } }") do |program|
      answer = nil
      wait_until("label") { (answer = stacks_of(program).first)["threads"].any? { |it| it["labels"]&.any? } }
      numbers, labels = answer["threads"].map { |it| it.values_at("profile_thread", "labels") }.transpose
      expect(numbers).to contain_exactly(Integer, Integer)
      expect(numbers.uniq.size).to eq(2)
      expect(labels).to eq([{}, { "job" => "a  [1m" }])
      expect(rperf("stacks", program.pid.to_s).stdout).to match(/^#2 tid \d+ job=a  \[1m +blocked/)
    end
  end

  it "says how long each thread has waited, while a session runs" do
    code = <<~RUBY
      queue = Queue.new
      Thread.new { sleep }.name = "before"
      Thread.pass until Thread.list.last.stop?
      sleep 0.1
      Rperf.start(mode: :wall)
      Thread.new { Thread.pass; queue.pop }.name = "since"
      Thread.new { loop { Thread.pass; 1.to_s } }.name = "busy"
    RUBY
    working(code) do |program|
      answer = nil
      # The busy one hands the GVL over all the time, but may have had to wait for a CPU just then.
      wait_until("waits") do
        answer = stacks_of(program).first
        times = answer["threads"].to_h { |it| [it["name"], it["state_ns"].to_i] }
        times.values_at("before", "since").min > 300_000_000 && times.fetch("busy") < 300_000_000
      end
      threads = answer["threads"].to_h { |it| [it["name"], it.values_at("state", "state_or_longer")] }
      expect(threads).to include("before" => ["blocked", true], "since" => ["blocked", false])
      text = rperf("stacks", program.pid.to_s).stdout
      expect(text).to match(/^#2 "before" tid \d+ +blocked over [\d,]+(?:\.\d)? m?s: #{woken}$/)
      expect(text).to match(/^#3 "since" tid \d+ +blocked [\d,]+(?:\.\d)? m?s: #{woken}$/)
    end
    working(code.sub(/Rperf.start.*/, "")) do |program|
      expect(stacks_of(program).first["threads"].map { |it| it["state_ns"] }).to all(be_nil)
    end
  end

  it "answers among busy threads, and leaves no thread behind" do
    code = "3.times { Thread.new { work } }
            Thread.new { loop { sleep 0.05; File.write('threads', Thread.list.size) } }"
    working(code) do |program|
      10.times { expect(stacks_of(program).first["threads"].size).to eq(5) }
      wait_until("end of the helper") { File.exist?(path_to("threads")) && File.read(path_to("threads")) == "5" }
    end
  end

  it "disturbs no wait" do
    code = <<~'RUBY'
      require "socket"
      require "timeout"
      require "monitor"
      reader, writer = IO.pipe
      # Nothing comes of this one.
      quiet = IO.pipe
      server = TCPServer.new("127.0.0.1", 0)
      lock = Mutex.new.tap(&:lock)
      monitor = Monitor.new
      file = File.open("lock", "w").tap { |it| it.flock(File::LOCK_EX) }
      waits = {
        sleep: -> { sleep 1 }, queue: -> { Queue.new.pop(timeout: 1) }, join: -> { Thread.new { sleep 1 }.join(5) && 1 },
        select: -> { IO.select([quiet.first], nil, nil, 1) }, read: -> { reader.sysread(1) }, accept: -> { server.accept && 1 },
        child: -> { child = spawn("sleep", "1"); Process.wait(child) == child }, mutex: -> { lock.lock; lock.unlock; 1 },
        condition: -> { Mutex.new.then { |it| it.synchronize { ConditionVariable.new.wait(it, 1) } }; 1 },
        monitor: -> { monitor.synchronize { monitor.new_cond.wait(1) }; 1 },
        mutex_sleep: -> { Mutex.new.then { |it| it.synchronize { it.sleep(1) } } },
        flock: -> { File.open("lock").flock(File::LOCK_EX) }, popen: -> { IO.popen("sleep 1; echo x").read },
        timeout: -> { Timeout.timeout(1) { sleep } rescue $!.class }
      }
      clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      threads = waits.map do |name, wait|
        Thread.new { began = clock.call; result = wait.call; [name, result, clock.call - began] }
      end
      Thread.new { sleep 1; writer.write("x"); file.close; TCPSocket.new("127.0.0.1", server.addr[1]) }
      Thread.new { loop { 1000.times(&:to_s) } }
      puts Rperf.listen
      sleep 1.05
      lock.unlock
      results = threads.map(&:value)
      File.write("results.new", Marshal.dump(results))
      File.rename("results.new", "results")
      sleep
    RUBY
    listening(code) do |program|
      asked = 0
      until File.exist?(path_to("results"))
        expect(ask(path_of(program), "/v1/stacks").last["source"]).to eq("vm")
        asked += 1
      end
      results = Marshal.load(File.binread(path_to("results"))) # rubocop:disable Security/MarshalLoad -- a spec's own
      early = results.select { |_, _, seconds| seconds < 0.85 }
      expect(early).to be_empty
      values = results.to_h { |name, value, _| [name, value] }
      expect(values).to include(queue: nil, select: nil, read: "x", child: true, popen: "x\n", flock: 0)
      expect(asked).to be > 3
    end
  end

  it "lets all exceptions arrive that are raised in threads meanwhile" do
    code = <<~RUBY
      Thread.abort_on_exception = true
      count = 0
      puts Rperf.listen
      200.times do
        is_ready = false
        thread = Thread.new do
          is_ready = true
          work
        rescue RuntimeError
          count += 1
        end
        sleep 0.001 until is_ready
        thread.raise("x")
        thread.join
      end
      File.write("count", count.to_s)
    RUBY
    working("#{code}\nloop { sleep 0.01 }") do |program|
      ask(path_of(program), "/v1/stacks") until File.exist?(path_to("count")) && !File.empty?(path_to("count"))
      expect(File.read(path_to("count"))).to eq("200")
    end
  end

  it "goes on in forked children, whose parent was asked just then" do
    code = <<~RUBY
      puts Rperf.listen
      ends = 100.times.map { Process.wait2(fork { 1000.times(&:to_s) }).last.success? }
      File.write("ends", ends.uniq.inspect)
    RUBY
    working(code) do |program|
      ask(path_of(program), "/v1/stacks") until File.exist?(path_to("ends")) && !File.empty?(path_to("ends"))
      expect(File.read(path_to("ends"))).to eq("[true]")
    end
  end

  it "works while the program is profiled" do
    working("Rperf.start(mode: :wall); at_exit { Rperf.stop }; trap(:TERM) { exit }") do |program|
      expect(stacks_of(program).first["source"]).to eq("vm")
      Process.kill(:TERM, program.pid)
      wait_until("end") { !answers?(path_of(program)) }
    end
  end

  describe "without the VM" do
    it "shows native threads where the ThreadGroup is frozen, and the program goes on" do
      working("ThreadGroup::Default.freeze") do |program|
        answer, _, outcome = stacks_of(program)
        expect([answer["source"], outcome.status.exitstatus]).to eq(["system", 1])
        expect(outcome.stderr).to include("makes no thread for the answer")
        expect(ask(path_of(program)).first).to eq(200)
      end
    end

    it "names what the program has raised in the thread that takes them" do
      code = <<~RUBY
        class Boom < StandardError
          def self.name = File.write("ran", "")
          singleton_class.alias_method(:to_s, :name)
        end
        300.times { Thread.new { sleep } }
        raised = {}.compare_by_identity
        Thread.new { loop { Thread.list.each { |it| raised[it] ||= !it.raise(Boom) if it.name == "rperf" } } }
      RUBY
      working(code) do |program|
        wait_until("the exception") { stacks_of(program).first["note"]&.end_with?("was to answer: Boom") }
        expect(File).not_to exist(path_to("ran"))
      end
    end

    it "says so within some seconds where nothing runs" do
      listening("puts Rperf.listen; Queue.new.tap { |queue| Thread.new { sleep } }.pop") do |program|
        outcome = rperf("stacks", "--no-wake", program.pid.to_s, limit: 30)
        expect(outcome.stderr).to start_with("rperf: #{program.pid}: the VM doesn't answer: no Ruby code runs just now")
        expect(outcome.stdout).to include(woken) if File.exist?("/proc/self/syscall")
        expect(outcome.status.exitstatus).to eq(1)
      end
    end
  end

  it "says why a process can't be asked" do
    expect(rperf("stacks", Process.pid.to_s).stderr)
      .to match(/\Arperf: process #{Process.pid}.* has no port. Start it with RPERF_LISTEN=1 .*\n\z/)
    gone = Process.spawn("true").tap { |pid| Process.wait(pid) }
    zombie = Process.spawn("true")
    sleep(0.01) until File.read("/proc/#{zombie}/stat").include?(") Z ")
    expect(rperf("stacks", zombie.to_s).stderr).to eq("rperf: the program #{zombie} has ended\n")
    Process.wait(zombie)
    expect(rperf("stacks", gone.to_s).stderr).to eq("rperf: there is no process #{gone}\n")
    expect(%w[x 0 -1].map { |pid| rperf("stacks", pid).status.exitstatus }.uniq).to eq([2])
    listening("puts Rperf.listen; sleep") do |program|
      Process.kill(:STOP, program.pid)
      wait_until("stop") { listed.fetch(program.pid)["state"] == "stopped" }
      expect(rperf("stacks", program.pid.to_s).stderr)
        .to eq("rperf: #{program.pid} was stopped (SIGSTOP): nothing can be asked until SIGCONT\n")
    end
  end
end
