# frozen_string_literal: true

RSpec.describe "rperf top" do
  include Ports

  def work = "def work = loop { 100.times { |i| i.to_s } }"

  # A program with a session whose main thread works.
  def profiled(code = "", options: "mode: :wall", &)
    listening("#{work}\n#{code}\nRperf.start(#{options})\nputs Rperf.listen\nwork", &)
  end

  def top(program, *options, **) = rperf("top", *options, program.pid.to_s, **)

  def json(outcome) = outcome.stdout.lines.map { |line| JSON.parse(line) }

  def methods_of(interval) = interval["methods"].to_h { |method| [method["name"], method] }

  def seen = File.exist?(path_to("seen")) ? File.read(path_to("seen")) : ""

  # Follows the program while the block does something to it, until the command ends. The block may
  # end it: it has the command's process.
  def followed(program, *options)
    pid = Process.spawn(clean_environment, *rperf_command("top", "--json", *options, program.pid.to_s),
                        out: path_to("seen"), err: path_to("said"), pgroup: true)
    wait_until("table") { seen.include?("\n") }
    yield pid
    status = nil
    wait_until("end of rperf top") { (_, status = Process.wait2(pid, Process::WNOHANG)) && status }
    [seen.lines.map { |line| JSON.parse(line) }, File.read(path_to("said")), status.exitstatus || status.termsig]
  end

  it "shows where the time of each interval goes", vm: true, alone: true do
    waits = "Thread.new { Rperf.label(queue: 'mail') { Queue.new.pop } }"
    profiled("Thread.new { Queue.new.pop }; #{waits}") do |program|
      intervals = json(top(program, "--json", "-n", "3", "--interval", "0.5"))
      expect(intervals.size).to eq(3)
      intervals.each do |interval|
        expect(interval).to include("version" => 1, "pid" => program.pid, "mode" => "wall", "frequency" => 1000)
        expect(interval["elapsed_ns"]).to be_between(100_000_000, 30_000_000_000)
        methods = methods_of(interval)
        expect(methods.fetch("Object#work")["total_ns"]).to be > interval["running_ns"] * 0.8
        expect(methods.fetch("Integer#to_s")["self_ns"]).to be_positive
        # Three threads, each of which is in one state at a time.
        states = interval.values_at("running_ns", "waiting_ns", "blocked_ns", "gc_ns").sum
        expect(states.to_f / interval["elapsed_ns"]).to be_between(2.5, 3.5)
      end
      blocked = intervals.sum { |interval| methods_of(interval).dig("Thread::Queue#pop", "blocked_ns") || 0 }
      expect(blocked).to be_positive
      label = intervals.last["labels"].find { |it| it.values_at("key", "value") == %w[queue mail] }
      expect(label["blocked_ns"]).to be_between(intervals.last["elapsed_ns"] / 2, intervals.last["elapsed_ns"] * 2)
      expect(intervals.map { |interval| interval["since_ns"] }).to eq(intervals.map { |it| it["since_ns"] }.sort)
    end
  end

  it "hides idle threads with a line, and shows them with --idle", vm: true, alone: true do
    profiled("3.times { Thread.new { Queue.new.pop } }") do |program|
      said = /^Idle threads: ([\d.]+) hidden, --idle shows them$/
      hidden = top(program, "--once", "--interval", "0.5").stdout
      expect(hidden[said, 1].to_f).to be_between(2.5, 3.5)
      expect(hidden[/blocked ([\d.]+) threads/, 1].to_f).to be < 0.5
      all = top(program, "--once", "--interval", "0.5", "--idle").stdout
      expect(all).not_to match(said)
      expect(all[/blocked ([\d.]+) threads/, 1].to_f).to be_between(2.5, 3.5)
      interval = json(top(program, "--once", "--json", "--interval", "0.5")).first
      expect(interval["blocked_ns"]).to be >= interval["idle_ns"]
      expect(interval["idle_ns"].fdiv(interval["elapsed_ns"])).to be_between(2.5, 3.5)
    end
  end

  it "counts each of many threads, however deep their stacks are", vm: true, alone: true do
    code = "def wait(depth) = depth.zero? ? Queue.new.pop : wait(depth - 1)
            300.times { Thread.new { wait(60) } }
            sleep 1"
    profiled(code) do |program|
      json(top(program, "--json", "-n", "3", "--interval", "0.5")).each do |interval|
        expect(interval["blocked_ns"].to_f / interval["elapsed_ns"]).to be_between(200, 450)
      end
    end
  end

  it "shows who keeps others waiting", vm: true, alone: true do
    code = <<~RUBY
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def compute(ms) = (now + (ms / 1000.0)).then { |deadline| nil while now < deadline }
      def hog = compute(40)
      def visit = compute(0.05)
      Thread.new { loop { Rperf.label(job: "export") { hog }; sleep 0.01 } }
      2.times { Thread.new { loop { sleep 0.0005; visit } } }
      puts Rperf.listen
      sleep
    RUBY
    listening(code) do |program|
      intervals = json(top(program, "--json", "-n", "4", "--interval", "0.5"))
      # A wait and whose fault it was may be known in intervals that follow each other.
      waited, elapsed = %w[waiting_ns elapsed_ns].map { |key| intervals.sum { |interval| interval[key] } }
      hog, visit = %w[Object#hog Object#visit].map do |name|
        intervals.sum { |interval| methods_of(interval).dig(name, "total_gvl_blame_ns") || 0 }
      end
      labels = intervals.flat_map { |interval| interval["labels"] }
      export = labels.select { |label| label.values_at("key", "value") == %w[job export] }
      expect(waited).to be > elapsed / 2
      expect(hog).to be_between(waited / 2, waited * 1.5)
      expect(hog).to be > 4 * visit
      expect(export.sum { |label| label["gvl_blame_ns"] }).to be_between(hog * 0.9, hog * 1.1)
      expect(top(program, "--once").stdout).to match(%r{^ +self/s .* blame/s +method})
      outcome = rperf("attach", program.pid.to_s, "-d", "1", "-o", "attached.pb.gz")
      expect(outcome.status).to be_success
      rows = Rperf.load(path_to("attached.pb.gz")).top(value: "gvl_blame", sort: :total, limit: nil)
      expect(rows.find { |row| row[:name] == "Object#hog" }[:total]).to be > rows.sum { |row| row[:self] } / 2
    end
  end

  it "blames nobody for waits of rperf's own thread", vm: true do
    listening("puts Rperf.listen; loop { 1_000.times(&:to_s) }") do |program|
      expect(rperf("attach", program.pid.to_s, "-d", "2", "-o", "alone.pb.gz").status).to be_success
      profile = Rperf.load(path_to("alone.pb.gz"))
      blame, wall = %w[gvl_blame wall].map { |value| profile.totals(value:)[:total] }
      expect(blame).to be < 0.05 * wall
      interval = json(top(program, "--json", "-n", "2", "--interval", "1")).last
      blames = interval["methods"].map { |method| method["total_gvl_blame_ns"] }
      expect(blames.max).to be < 0.05 * interval["elapsed_ns"]
    end
  end

  it "has no blame of a session that doesn't measure it" do
    profiled do |program|
      interval, = json(top(program, "--json", "--once"))
      expect(interval["methods"].map { |method| method.values_at("gvl_blame_ns", "total_gvl_blame_ns") }.uniq)
        .to eq([[nil, nil]])
    end
  end

  it "prints tables" do
    profiled do |program|
      outcome = top(program, "-n", "2", "--interval", "0.2")
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      tables = outcome.stdout.split(/^$\n(?=\d)/)
      expect(tables.size).to eq(2)
      tables.each do |table|
        head, summary, empty, header, *rows = table.lines(chomp: true)
        expect(head).to match(/\A#{program.pid} .* wall, 1000 Hz, for \d+\.\d s, overhead \d+\.\d %\z/)
        expect(summary).to match(/\AGVL busy \d+\.\d % +waiting for it \d+\.\d threads +GC \d+\.\d % +blocked/)
        expect([empty, header.split]).to eq(["", %w[self/s self % total % wait/s method file]])
        expect(rows).to include(match(/\A +\d+ ms +\d+\.\d % +\d+\.\d % +\d+ ms   Object#work +-e\z/))
      end
      expect(top(program, "--once").stdout.scan("GVL busy").size).to eq(1)
    end
  end

  it "has CPU time in cpu mode", vm: true do
    profiled(options: "mode: :cpu, frequency: 500") do |program|
      expect(top(program, "--once").stdout).to include(" cpu, 500 Hz, ").and match(/^CPU \d+\.\d %   GC \d+\.\d %$/)
    end
  end

  it "leaves the program's own profile whole", vm: true do
    code = <<~RUBY
      trap(:USR1) { $ended = true }
      def work
        100.times { |i| i.to_s } until $ended
        profile = Rperf.stop
        states = profile[:aggregated_samples].sum { |sample| sample[1] }
        File.write("sums.new", [states, profile[:duration_ns]].join(" "))
        File.rename("sums.new", "sums")
      end
    RUBY
    listening("#{code}\nRperf.start(mode: :wall)\nputs Rperf.listen\nwork\nsleep") do |program|
      _, said, status = followed(program, "--interval", "0.1") do |command|
        sleep 0.5
        Process.kill(:USR1, program.pid)
        wait_until("message") { File.read(path_to("said")).end_with?("\n") }
        Process.kill(:INT, command)
      end
      expect(said).to eq("rperf: #{program.pid}: the program's session has ended; profiling it (wall, 1000 Hz)\n")
      expect(status).to eq(Signal.list["INT"])
      wait_until("sums") { File.size?(path_to("sums")) }
      time, duration = File.read(path_to("sums")).split.map(&:to_f)
      expect(time / duration).to be_between(0.98, 1.02)
    end
  end

  it "goes on with the session that comes next" do
    code = "trap(:USR1) { $over = true }
            Thread.new { sleep 0.01 until $over; Rperf.stop; Rperf.start(mode: :cpu, frequency: 99) }"
    profiled(code) do |program|
      intervals, said, status = followed(program, "--interval", "0.3") do |command|
        Process.kill(:USR1, program.pid)
        wait_until("table of the next session") { seen.match?(/"mode":"cpu".*\n\z/) }
        Process.kill(:INT, command)
      end
      expect(intervals.map { |interval| interval["mode"] }.uniq).to eq(%w[wall cpu])
      expect(said).to eq("rperf: #{program.pid}: the profile begins anew (cpu, 99 Hz)\n")
      expect(status).to eq(Signal.list["INT"])
    end
  end

  it "goes on when the program takes its numbers and begins anew", vm: true do
    code = "trap(:USR1) { $taken = true }
            Thread.new { sleep 0.01 until $taken; Rperf.snapshot(clear: true) }"
    profiled(code) do |program|
      signalled = nil
      intervals, said, = followed(program, "--interval", "0.3") do |command|
        signalled = now
        Process.kill(:USR1, program.pid)
        wait_until("message") { File.read(path_to("said")).end_with?("\n") }
        before = seen.lines.size
        wait_until("table") { seen.lines.size > before + 1 && seen.end_with?("\n") }
        Process.kill(:INT, command)
      end
      expect(said).to eq("rperf: #{program.pid}: the profile begins anew (wall, 1000 Hz)\n")
      expect(intervals.last["since_ns"]).to be < (now - signalled) * 1e9
      expect(methods_of(intervals.last)).to include("Object#work")
    end
  end

  it "says that the program has ended" do
    profiled do |program|
      intervals, said, status = followed(program, "--interval", "0.1") { Process.kill(:KILL, program.pid) }
      expect(intervals).not_to be_empty
      expect([said, status]).to eq(["rperf: the program #{program.pid} has ended\n", 0])
    end
  end

  it "waits for a program in which nothing runs" do
    code = "$queue = Queue.new; Thread.new { sleep }; trap(:USR1) { $queue << 1 }; Rperf.start(mode: :wall)"
    listening("#{work}\n#{code}\nputs Rperf.listen\n$queue.pop\nwork") do |program|
      said = path_to("said")
      pid = Process.spawn(clean_environment, *rperf_command("top", "-n", "1", program.pid.to_s), out: path_to("seen"),
                                                                                                 err: said)
      wait_until("message") { File.exist?(said) && File.read(said).include?("runs no Ruby code just now") }
      Process.kill(:USR1, program.pid)
      Process.wait(pid)
      expect(File.read(path_to("seen"))).to include("Object#work")
    end
  end

  it "shows programs with many methods, threads and labels" do
    code = <<~'RUBY'
      500.times { |i| eval("def method_number_#{i}(n) = n.zero? ? 1.to_s : method_number_#{(i + 7) % 500}(n - 1)") }
      Thread.new { loop { |i| 20.times.map { |n| Thread.new { Rperf.label(n: n) { sleep 0.001 } } }.each(&:join) } }
      Thread.new { loop { 500.times { |i| send("method_number_#{i}", 30) } } }
    RUBY
    profiled(code) do |program|
      intervals = json(top(program, "--json", "-n", "5", "--interval", "0.3"))
      names = intervals.flat_map { |interval| methods_of(interval).keys }.uniq
      expect(names.grep(/method_number/).size).to be > 50
      expect(intervals.last["running_ns"]).to be_positive
    end
  end

  it "goes on in forked children, whose parent is watched", vm: true do
    code = <<~RUBY
      Thread.new do
        ends = 30.times.map { Process.wait2(fork { 1000.times(&:to_s) }).last.success? }
        File.write("ends", ends.uniq.inspect)
      end
    RUBY
    profiled(code) do |program|
      intervals = json(top(program, "--json", "-n", "20", "--interval", "0.1"))
      expect(intervals.size).to eq(20)
      wait_until("ends") { File.exist?(path_to("ends")) && !File.empty?(path_to("ends")) }
      expect(File.read(path_to("ends"))).to eq("[true]")
    end
  end

  it "ends when nobody reads any more" do
    profiled do |program|
      command = rperf_command("top", "--interval", "0.1", program.pid.to_s).map { |word| "'#{word}'" }.join(" ")
      outcome = run("sh", "-c", "#{command} | head -n 1")
      expect([outcome.stdout.lines.size, outcome.stderr]).to eq([1, ""])
      %w[stacks ps].each do |name|
        command = rperf_command(name, *([program.pid.to_s] if name == "stacks")).map { |word| "'#{word}'" }.join(" ")
        expect(run("sh", "-c", "{ sleep 0.1; #{command}; } | true").stderr).to eq("")
      end
    end
  end

  it "says why there is nothing to be seen" do
    listening("puts Rperf.listen; Rperf.start(mode: :trace); loop { 1.to_s }") do |program|
      expect(top(program).stderr)
        .to eq("rperf: #{program.pid}: the program's session traces calls (only sampling sessions can be watched)\n")
    end
    [%w[--interval 0], %w[--interval x], %w[-n 0], %w[--once -n 3]].each do |options|
      expect(rperf("top", *options, "1").status.exitstatus).to eq(2)
    end
  end

  describe "with a command" do
    # Runs it, with a block that ends the program once there is a table; how it has ended, and what was said.
    def running(*command)
      words = rperf_command("top", "--json", "-n", "1", "--interval", "0.3", *command)
      pid = Process.spawn(clean_environment, *words, chdir: directory, out: path_to("seen"), err: path_to("said"))
      wait_until("table") { seen.end_with?("\n") }
      yield pid
      status = Process.wait2(pid).last
      expect(methods_of(JSON.parse(seen))).to include("Object#work")
      said = File.readlines(path_to("said"))
      # At load it may take long to begin.
      [status, said.grep_v(/runs no Ruby code just now/).join]
    end

    it "runs it with a port, passes signals on, and ends as it does" do
      write_file("app.rb", "trap(:USR1) { exit 7 }\nputs 'printed'\nwarn 'said'\n#{work}\nwork\n")
      status, said = running(ruby, "app.rb") { |pid| Process.kill(:USR1, pid) }
      expect([status.exitstatus, said.lines.sort]).to eq([7, %W[printed\n said\n]])
    end

    it "watches what the command starts" do
      write_file("app.rb", "def work = 100.times { |i| i.to_s }\nwork until File.exist?('go')\n")
      status, said = running("sh", "-c", "'#{ruby}' app.rb; kill -TERM $$") { write_file("go", "") }
      expect([status.termsig, said]).to match([Signal.list["TERM"], /\Arperf: \d+ .*app\.rb comes in\n\z/])
    end

    it "says so if the program ends before the first table" do
      write_file("app.rb", "sleep 0.05 until File.exist?('go')\nexit 5\n")
      words = rperf_command("top", "--once", "--interval", "600", ruby, "app.rb")
      pid = Process.spawn(clean_environment, *words, chdir: directory, err: path_to("said"))
      wait_until("session") { listed.values.any? { |program| program["live"] } }
      write_file("go", "")
      expect(Process.wait2(pid).last.exitstatus).to eq(5)
      expect(File.read(path_to("said"))).to match(/\Arperf: the program ended before the first table: .*\n\z/)
    end

    it "says if there is nothing to be seen" do
      outcome = rperf("top", "--once", "sh", "-c", "exit 3")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to eq([3, "rperf: 'sh' ran no Ruby program that rperf could watch\n"])
      outcome = rperf("top", "no-such-command")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to eq([127, "rperf: command not found: no-such-command (there is no such file either)\n"])
      expect(rperf("top", "0").stderr).to start_with("rperf: 'PID' can't be '0': processes have numbers from 1 on")
      expect(rperf("top", "1", "x").stderr).to start_with("rperf: 'PID' can't be 'x': processes have numbers from 1 on")
      write_file("x.rb", "")
      expect(rperf("top", "x.rb").stderr).to end_with("x.rb (did you mean 'ruby x.rb'?)\n")
      write_file("x.data", "")
      File.chmod(0o755, path_to("x.data"))
      expect(rperf("top", "x.data").stderr).to end_with("isn't taken for a profile: chmod -x it)\n")
      File.chmod(0o644, path_to("x.data"))
      expect(rperf("top", "x.data", "--once").stderr).to include("saved profiles are shown on a terminal only")
    end
  end

  it "begins a session where there is none, and ends it; the program's own comes first", vm: true do
    code = "trap(:USR1) { $begins = true }
            Thread.new { sleep 0.01 until $begins; Rperf.start(mode: :cpu, frequency: 99) }"
    listening("#{work}\n#{code}\nputs Rperf.listen\nwork") do |program|
      session = -> { ask(program.lines.first).last.values_at("session", "live") }
      intervals, said, = followed(program, "--interval", "0.2") do |command|
        expect(session.call).to eq([{ "mode" => "wall", "frequency" => 1000 }, true])
        Process.kill(:USR1, program.pid)
        wait_until("table of the program's session") { seen.match?(/"mode":"cpu".*\n\z/) }
        Process.kill(:INT, command)
      end
      expect(methods_of(intervals.first)).to include("Object#work")
      expect(methods_of(intervals.first).keys.grep(/Helper/)).to be_empty
      expect(intervals.map { |interval| interval["mode"] }.uniq).to eq(%w[wall cpu])
      expect(said).to eq("rperf: #{program.pid}: the program has begun a session of its own (cpu, 99 Hz); watching " \
                         "that one\n")
      expect(session.call).to eq([{ "mode" => "cpu", "frequency" => 99 }, false])
    end
    listening("#{work}\nputs Rperf.listen\nwork") do |program|
      expect(json(top(program, "--json", "--once")).first).to include("mode" => "wall", "frequency" => 1000)
      wait_until("end of the session") { ask(program.lines.first).last["session"].nil? }
    end
  end

  describe "several programs" do
    # A server with workers, whose programs have a name that no other test has; a worker that ends is replaced.
    def cluster(&)
      code = <<~RUBY
        name = "cluster \#{$$} worker"
        start = -> { fork { Process.setproctitle(name); work } }
        socket = Rperf.listen
        $stdout.write([socket, name, *Array.new(2) { start.call }].join("\n") + "\n")
        loop { Process.wait; sleep 0.3; start.call }
      RUBY
      listening("#{work}\n#{code}", &)
    end

    it "merges those that match, and follows the ones that come and go", emulated: false do
      cluster do |program|
        name, *workers = program.lines.drop(1)
        wait_until("workers") { rperf("ps", "--match", name).stdout.scan(name).size == 2 }
        said = path_to("said")
        pid = Process.spawn(clean_environment, *rperf_command("top", "--interval", "0.3", "--match", name),
                            out: path_to("seen"), err: said, pgroup: true)
        both = %r{\A2 programs\n  (\d+) #{name} .*GVL busy.*\n  (\d+) .*\n\n +self/s.*\n(.*\n)* .*Object#work}
        wait_until("table") { seen.match?(both) }
        Process.kill(:KILL, workers.first.to_i)
        wait_until("next worker") { File.read(said).include?(" comes in") }
        last = File.read(said)[/(\d+) #{name} comes in/, 1]
        wait_until("table with it") { seen.split("programs").last.include?("  #{last} ") }
        Process.kill(:KILL, workers.last.to_i, last.to_i)
        wait_until("others") { File.read(said).scan(" comes in").size > 2 }
        last = File.read(said).scan(/(\d+) #{name} comes in/).last.first
        wait_until("table with them") { seen.split("programs").last.include?("  #{last} ") }
        Process.kill(:INT, pid)
        Process.wait(pid)
        expect(File.read(said)).to start_with("rperf: the program #{workers.first} has ended\n")
      end
    end

    it "has a JSON object for each of them, and profiles those that are there", emulated: false do
      cluster do |program|
        name, *workers = program.lines.drop(1)
        wait_until("workers") { rperf("ps", "--match", name).stdout.scan(name).size == 2 }
        outcome = rperf("top", "--json", "-n", "2", "--interval", "0.3", *workers)
        expect(json(outcome).map { |it| it["pid"].to_s }.uniq).to match_array(workers)
        outcome = rperf("attach", "--match", name, "--duration", "1", "-o", "x.pb.gz")
        expect([outcome.status.exitstatus, outcome.messages.size]).to eq([0, 1])
        rows = Rperf.load(path_to("x.pb.gz")).top(by: "label:%pid")
        expect(rows.map { |row| row[:name] }).to match_array(workers)
      end
    end

    it "leaves out those of another mode" do
      profiled do |one|
        profiled(options: "mode: :cpu") do |other|
          outcome = rperf("top", "--json", "-n", "2", "--interval", "0.2", one.pid.to_s, other.pid.to_s)
          left = outcome.stderr[/\Arperf: (\d+) is left out: its session is in \w+ mode, that of the first program/, 1]
          pids = json(outcome).map { |interval| interval["pid"] }.uniq
          expect([left.to_i, *pids]).to contain_exactly(one.pid, other.pid)
        end
      end
    end

    it "says so if nothing matches" do
      %w[top attach].each do |command|
        outcome = rperf(command, "--match", "no such program")
        none = "no program with a port matches 'no such program'; 'rperf ps' lists those that have one"
        expect(outcome.stderr).to eq("rperf: #{none}\n")
        expect(outcome.status.exitstatus).to eq(1)
      end
      expect(rperf("top", "--match", "(").status.exitstatus).to eq(2)
    end
  end
end
