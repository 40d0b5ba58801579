# frozen_string_literal: true

RSpec.describe "rperf attach", vm: true do
  include Ports

  def methods_to_find = <<~RUBY
    def work = 1000.times { |i| i.to_s * 10 }
    def wait = sleep(0.01)
  RUBY

  # A program that works on one thread and waits on another, after `code`.
  def working(code = "", &)
    listening("#{methods_to_find}Thread.new { loop { wait } }\nputs Rperf.listen\n#{code}\nloop { work }", &)
  end

  def attach(*arguments, **options, &) = rperf("attach", *arguments.map(&:to_s), **options, &)

  def seconds(profile) = profile[:duration_ns] / 1e9

  def methods_of(profile) = profile.top(value: "wall", sort: :total).map { |row| row[:name] }

  def profile_in(name = "x.pb.gz") = Rperf.load(path_to(name))

  # Runs it in the background; the block is called when it has written `line` to stderr. The status is returned.
  def attach_until(line, *arguments)
    err = path_to("err")
    command = rperf_command("attach", *arguments.map(&:to_s))
    pid = Process.spawn(clean_environment, *command, chdir: directory, err:)
    wait_until(line) { File.read(err).include?(line) }
    yield
    Process.wait2(pid).last
  end

  # Runs it in the background; the block is called when the program has a session, and the outcome returned.
  def attach_during(program, *arguments)
    attaching = Thread.new { attach(program.pid, *arguments) }
    wait_until("session") { ask(program.lines.first).last["live"] }
    yield
    attaching.value
  end

  it "samples objects, too, if it is told" do
    working do |program|
      outcome = attach(program.pid, "--duration", 1, "--measure", "alloc=sampled", "-o", "x.pb.gz")
      expect(outcome.status.exitstatus).to eq(0)
      objects = profile_in.top(value: "alloc_objects", sort: :total).to_h { |row| [row[:name], row[:total]] }
      expect(objects.fetch("Object#work")).to be > 10_000
      attach(program.pid, "--duration", 0.2, "-o", "y.pb.gz")
      expect { profile_in("y.pb.gz").top(value: "alloc_objects") }.to raise_error(ArgumentError)
      refused = attach(program.pid, "--measure", "alloc")
      expect(refused.messages.first).to start_with("rperf: --measure must be alloc=sampled")
    end
  end

  it "leaves a program out that runs no Ruby code, if another one has sent its profile" do
    listening("puts Rperf.listen; sleep") do |idle|
      working do |busy|
        outcome = attach(idle.pid, busy.pid, "--duration", 0.3, "-o", "x.pb.gz")
        expect(outcome.stderr).to include("#{idle.pid}: nothing was profiled, as no Ruby code ran")
        expect(methods_of(profile_in)).to include("Object#work")
      end
    end
  end

  it "follows what is made meanwhile, and joins a session that does, but says so of one that doesn't" do
    attached = lambda do |session|
      program = "KEPT = []\ndef keep = 5_000.times { KEPT << Object.new }\n#{session}\nThread.new { loop { keep } }"
      working(program) { |it| attach(it.pid, "--duration", 1, "--measure", "heap", "-o", "x.pb.gz") }
    end
    rows = -> { profile_in.top(value: "inuse_objects", sort: :total) }
    kept = -> { rows[].find { |row| row[:name] == "Object#keep" }[:total] }
    expect(attached[""].messages).to contain_exactly(start_with("rperf: wrote "))
    expect(kept[]).to be > 5_000
    expect(attached["Rperf.start(mode: :wall, measure: :heap)"].messages.size).to eq(2)
    expect(kept[]).to be > 5_000
    told = attached["Rperf.start(mode: :wall)"]
    expect(told.status.exitstatus).to eq(0)
    expect(told.messages[1]).to match(/lacks objects, because the session that the program had already doesn't sample/)
    expect { kept[] }.to raise_error(ArgumentError, /inuse_objects/)
  end

  it "profiles all threads of a running program for as long as it is told, and leaves nothing behind" do
    working do |program|
      outcome = attach(program.pid, "--duration", 1, "-o", "x.pb.gz")
      expect(outcome.stderr).to match(/\Arperf: wrote x.pb.gz \([\d,]+ samples, [\d.]+ s\)\n\z/)
      expect(outcome.status.exitstatus).to eq(0)
      profile = profile_in
      expect(seconds(profile)).to be_between(1.0, 20)
      expect(profile[:mode]).to eq(:wall)
      # Two threads, each with the time that it has lived, and not the one that has answered.
      threads = profile.top(by: :thread, value: "wall").map { |row| row[:self] }
      life = profile[:duration_ns]
      expect(threads).to match([be_within(0.002 * life).of(life)] * 2)
      expect(methods_of(profile)).to include("Object#work", "Object#wait")
      expect(profile[:safepoint_stacks]).to be <= profile[:tick_stacks]
      expect(ask(program.lines.first).last).to include("session" => nil, "live" => false)
      wait_until("end of the helper") { ask(program.lines.first, "/v1/stacks").last["threads"].size == 2 }
    end
  end

  it "makes one profile of several programs" do
    working do |first|
      working do |second|
        outcome = attach(first.pid, second.pid, first.pid, "-d", 1, "-o", "x.pb.gz")
        expect(outcome.stderr).to match(/\Arperf: wrote x.pb.gz \([\d,]+ samples of 2 processes, [\d.]+ s\)\n\z/)
        rows = profile_in.top(by: "label:%pid", value: "wall")
        expect(rows.map { |row| row[:name] }).to contain_exactly(first.pid.to_s, second.pid.to_s)
      end
    end
  end

  it "writes what it is told, or rperf.data" do
    working do |program|
      expect(attach(program.pid, "-d", "0.3").stderr).to include("wrote rperf.data")
      expect(attach(program.pid, "-d", "0.3", "-p", "-m", "cpu").stdout).to match(/\ATotal: .*\(cpu\)$/)
      attach(program.pid, "-d", "0.3", "-o", "x.txt", "-f", "100")
      expect(File.read(path_to("x.txt"))).to include("Object#work")
    end
  end

  it "ends early by Ctrl-C, and keeps the profile" do
    working do |program|
      command = rperf_command("attach", program.pid.to_s, "-d", "600", "-o", "x.pb.gz")
      pid = Process.spawn(clean_environment, *command, chdir: directory, err: path_to("err"))
      wait_until("session") { ask(program.lines.first).last["live"] }
      sleep 0.5
      Process.kill(:INT, pid)
      expect(Process.wait2(pid).last.exitstatus).to eq(0)
      expect(File.read(path_to("err"))).to start_with("rperf: wrote x.pb.gz")
      expect(seconds(profile_in)).to be_between(0.3, 60)
    end
  end

  it "leaves nothing behind when it is killed" do
    working do |program|
      threads = -> { ask(program.lines.first, "/v1/stacks").last["threads"].size }
      3.times do
        pid = Process.spawn(clean_environment, *rperf_command("attach", program.pid.to_s), chdir: directory)
        wait_until("session") { ask(program.lines.first).last["live"] }
        Process.kill(:KILL, pid)
        Process.wait(pid)
        wait_until("end of the session") { ask(program.lines.first).last["session"].nil? }
      end
      wait_until("end of the helper") { threads.call == 2 }
    end
  end

  describe "and the program" do
    it "begins a session of its own as if nothing were there" do
      code = <<~RUBY
        Thread.new do
          sleep 0.01 until File.exist?("go")
          seen = [Rperf.running?, Rperf.stop, Rperf.snapshot]
          Rperf.start(mode: :cpu, frequency: 99)
          seen << Rperf.running?
          sleep 0.3
          sleep 0.01 until Thread.list.size == 3
          profile = Rperf.stop
          File.write("seen.new", [*seen, profile[:mode], profile[:frequency]].inspect)
          File.rename("seen.new", "seen")
        end
      RUBY
      working(code) do |program|
        outcome = attach_during(program, "-d", 60, "-o", "x.pb.gz") do
          sleep 0.3
          write_file("go", "")
        end
        wait_until("session's end") { File.size?(path_to("seen")) }
        expect(File.read(path_to("seen"))).to eq("[false, nil, nil, true, :cpu, 99]")
        reason = "the program has begun a session of its own"
        expect(outcome.stderr).to match(/\Arperf: #{program.pid}: #{reason} after [\d.]+ s; the profile is of the /)
        expect(outcome.status.exitstatus).to eq(0)
        expect(seconds(profile_in)).to be_between(0.2, 50)
      end
    end

    it "ends" do
      code = "Thread.new { sleep 0.01 until File.exist?('go'); Process.kill(:TERM, $$) }\ntrap(:TERM) { exit }"
      working(code) do |program|
        outcome = attach_during(program, "-d", 60, "-o", "x.pb.gz") do
          sleep 0.3
          write_file("go", "")
        end
        expect(outcome.stderr).to match(/: the program has ended after [\d.]+ s; the profile is of the time before$/)
        expect(methods_of(profile_in)).to include("Object#work")
      end
    end

    it "is killed" do
      working do |program|
        outcome = attach_during(program, "-d", 60, "-o", "x.pb.gz") do
          sleep 3
          Process.kill(:KILL, program.pid)
        end
        line = /\Arperf: #{program.pid}: the program has ended after [\d.]+ s; the profile goes up to [\d.]+ s before/
        expect(outcome.stderr).to match(line)
        expect(methods_of(profile_in)).to include("Object#work")
      end
    end

    it "is stopped, and goes on" do
      working do |program|
        outcome = attach_during(program, "-d", 3, "-o", "x.pb.gz") do
          Process.kill(:STOP, program.pid)
          sleep 4
          wait_until("line of the stop") { File.read(path_to(".stderr")).include?("was stopped") }
          Process.kill(:CONT, program.pid)
        end
        line = "rperf: #{program.pid} was stopped (SIGSTOP): nothing can be asked until SIGCONT\n"
        expect(outcome.messages.first).to eq(line)
        expect(outcome.status.exitstatus).to eq(0)
      end
    end

    it "forks" do
      code = <<~RUBY
        Thread.new do
          sleep 0.01 until File.exist?("go")
          child = fork do
            work
            puts "child \#{[Thread.list.size, Rperf.running?, Rperf.start, Rperf.stop.class]}"
          end
          Process.wait(child)
        end
      RUBY
      working(code) do |program|
        outcome = attach_during(program, "-d", 2, "-o", "x.pb.gz") { write_file("go", "") }
        expect(outcome.stderr).to start_with("rperf: wrote x.pb.gz")
        lines = -> { File.readlines(path_to(".listening1"), chomp: true) }
        wait_until("line of the child") { lines.call.size > 1 }
        expect(lines.call.last).to eq("child [1, false, true, Rperf::Profile]")
      end
    end

    it "runs no Ruby code, and some later" do
      File.mkfifo(path_to("go"))
      code = "Thread.new { File.read('go'); loop { work } }\nsleep"
      listening("#{methods_to_find}puts Rperf.listen\n#{code}") do |program|
        line = "#{program.pid} runs no Ruby code just now: all its threads wait, or one keeps the GVL in native code; "
        status = attach_until(line, program.pid, "-d", 1, "-o", "x.pb.gz") { File.write(path_to("go"), "") }
        expect(status.exitstatus).to eq(0)
        expect(methods_of(profile_in)).to include("Object#work")
      end
    end

    it "is being profiled already, and runs no Ruby code" do
      File.mkfifo(path_to("go"))
      code = "Thread.new { File.read('go'); loop { work } }\nsleep"
      listening("#{methods_to_find}Rperf.start(mode: :wall)\nputs Rperf.listen\n#{code}") do |program|
        line = "#{program.pid} doesn't answer: no Ruby code runs just now, or a thread keeps the GVL in native code"
        status = attach_until(line, program.pid, "-d", "0.2", "-o", "x.pb.gz") { File.write(path_to("go"), "") }
        expect(status.exitstatus).to eq(0)
      end
    end

    it "waits on all threads when the time is over" do
      code = "Thread.new { until File.exist?('go') do work; sleep 0.01 end; sleep }\nsleep"
      listening("#{methods_to_find}puts Rperf.listen\n#{code}") do |program|
        outcome = attach_during(program, "-d", 2, "-o", "x.pb.gz") { write_file("go", "") }
        expect(outcome.status.exitstatus).to eq(0)
        expect(seconds(profile_in)).to be < 20
      end
    end

    let(:watching) { "watching that session, whatever -m and -f say" }

    it "is being profiled already" do
      working("Rperf.start(mode: :cpu, frequency: 250)\nThread.new { sleep 600 }") do |program|
        outcome = attach(program.pid, "-d", 1, "-o", "x.pb.gz")
        expect(outcome.messages.first)
          .to eq("rperf: #{program.pid} is being profiled already (cpu, 250 Hz); #{watching}\n")
        profile = profile_in
        expect([profile[:mode], profile[:frequency]]).to eq([:cpu, 250])
        expect(seconds(profile)).to be_between(0.9, 20)
        expect(rperf("snapshot", program.pid.to_s, "-o", "y.pb.gz").status.exitstatus).to eq(0)
        expect(seconds(profile_in("y.pb.gz"))).to be > seconds(profile)
      end
    end

    it "is being profiled already, in another mode than others or by a trace" do
      working("Rperf.start(mode: :cpu)") do |first|
        working do |second|
          outcome = attach(first.pid, second.pid, "-d", "0.5", "-o", "x.pb.gz")
          expect(outcome.stderr).to match(/: the profile of (#{first.pid}|#{second.pid}) is left out: profiles of diff/)
          expect(outcome.stderr).to match(/^rperf: wrote x.pb.gz/)
          expect(outcome.status.exitstatus).to eq(1)
        end
      end
      working("Rperf.start(mode: :trace)") do |program|
        outcome = attach(program.pid, "-d", 600)
        expect(outcome.stderr).to start_with("rperf: #{program.pid}: its calls are being traced, and a trace isn't cut")
        expect(outcome.status.exitstatus).to eq(1)
        expect(ask(program.lines.first, "/v1/profile?seconds=600").first).to eq(409)
        expect(rperf("snapshot", program.pid.to_s, "-o", "y.pb.gz").status.exitstatus).to eq(0)
      end
    end

    it "is being profiled by another client" do
      working do |program|
        attach_during(program, "-d", 600, "-o", "x.pb.gz") do
          outcome = attach(program.pid, "-d", "0.3", "-m", "cpu", "-o", "y.pb.gz")
          expect(outcome.messages.first)
            .to eq("rperf: #{program.pid} is being profiled already (wall, 1000 Hz); #{watching}\n")
          expect(attach(program.pid, "-d", "0.3", "-o", "y.pb.gz").stderr).to start_with("rperf: wrote y.pb.gz")
          Process.kill(:TERM, program.pid)
        end
        expect(seconds(profile_in)).to be > seconds(profile_in("y.pb.gz"))
      end
    end

    it "ends the thread that answers" do
      code = "Thread.new { loop { Thread.list.each { |it| it.kill if it.name == 'rperf' }; sleep 0.05 } }"
      working(code) do |program|
        outcome = attach(program.pid, "-d", 1, "-o", "x.pb.gz")
        expect(outcome.stderr).to start_with("rperf: wrote x.pb.gz")
        wait_until("end of the session") { ask(program.lines.first).last["session"].nil? }
      end
    end

    it "has labels" do
      working("Thread.new { loop { Rperf.label(job: 'x') { work } } }") do |program|
        attach(program.pid, "-d", 1, "-o", "x.pb.gz")
        expect(profile_in.top(by: "label:job", value: "wall").map { |row| row[:name] }).to include("x")
      end
    end
  end

  it "says what can't be done" do
    expect(attach("-d", 1).status.exitstatus).to eq(2)
    expect(attach(1, "-d", "x").stderr).to eq("rperf: --duration must be seconds from 0.01 to 86400, not 'x'\n")
    expect(attach(1, "-m", "trace").stderr).to start_with("rperf: -m must be cpu or wall")
    expect(attach(1, "-f", 5000).stderr)
      .to eq("rperf: -f must be a whole number from 1 to 1000 (samples per second), not '5000'\n")
    outcome = attach(Process.pid, "-d", 1)
    expect(outcome.stderr).to include("has no port. Start it with RPERF_LISTEN=1")
    expect(outcome.status.exitstatus).to eq(1)
    working do |program|
      outcome = rperf("snapshot", program.pid.to_s)
      expect(outcome.stderr).to start_with("rperf: #{program.pid}: no profiling session runs in the program;")
    end
  end
end
