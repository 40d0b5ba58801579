# frozen_string_literal: true

require "pty"

# However a profiled program ends: it ends as it would alone, and its profile is there.
RSpec.describe "the end of a profiled program", vm: true do
  def record(program, *arguments, &)
    path = write_file("program.rb", "def work = (i = 0; i += 1 while i < 10_000_000)\nwork\n#{program}\n")
    rperf("record", "-o", "p.pb.gz", ruby, path, *arguments, &)
  end

  def alone(program)
    run(ruby, write_file("program.rb", program))
  end

  def expect_profile
    expect(weight_of(read_profile(path_to("p.pb.gz")), "Object#work")).to be > 0
  end

  {
    "by return" => ["1", 0],
    "by exit" => ["exit 3", 3],
    "by abort" => ["abort 'bye'", 1],
    "by an exception" => ["raise 'oh'", 1],
    "by exit!" => ["exit!(3)", 3],
    "by Process.exit! with true" => ["Process.exit!(true)", 0],
    "by Kernel.exit! without a status" => ["Kernel.exit!", 1],
    "by exit! in a method of an object" => ["Object.new.instance_eval { exit!(5) }", 5],
    "by exit! in another thread" => ["Thread.new { exit!(6) }.join", 6],
    "by exit in at_exit" => ["at_exit { exit 8 }", 8],
    "with at_exit blocks that raise" => ["at_exit { raise 'oh' }; exit 3", 1],
    "with stderr closed" => ["$stderr.close; exit 9", 9]
  }.each do |how, (program, status)|
    it "#{how} keeps status #{status}" do
      outcome = record(program)
      expect(outcome.status.exitstatus).to eq(status)
      expect(outcome.status.exitstatus).to eq(alone(program).status.exitstatus)
      expect_profile
    end
  end

  it "prints the same to stderr as alone, plus one line" do
    program = "at_exit { warn 'late' }; raise KeyError, 'oh'"
    lines = record(program).stderr.lines
    expect(lines.grep(/\Arperf: /).size).to eq(1)
    expect(lines.grep_v(/\Arperf: /).join).to include("late", "oh (KeyError)")
  end

  %i[TERM INT HUP USR1 ALRM].each do |signal|
    it "by SIG#{signal} sent to rperf is by that signal" do
      outcome = record("puts 'ready'; $stdout.flush; sleep") { |pid| Process.kill(signal, pid) }
      expect(outcome.status.termsig).to eq(Signal.list[signal.to_s])
      expect_profile
    end
  end

  it "by a signal that the program handles is by its own status" do
    program = "trap(:TERM) { exit 12 }; puts 'ready'; $stdout.flush; sleep"
    outcome = record(program) { |pid| Process.kill(:TERM, pid) }
    expect(outcome.status.exitstatus).to eq(12)
    expect_profile
  end

  %i[TTIN TTOU TSTP WINCH CONT].each do |signal|
    it "can be asked for by SIG#{signal} sent to rperf, which the program handles" do
      program = "trap(:#{signal}) { exit 12 }; puts 'ready'; $stdout.flush; sleep"
      outcome = record(program) { |pid| Process.kill(signal, pid) }
      expect(outcome.status.exitstatus).to eq(12)
      expect_profile
    end
  end

  it "comes after Ctrl-Z and fg as if nothing had been" do
    path = write_file("program.rb", "puts 'ready'; $stdout.flush; exit $stdin.gets.to_i")
    command = rperf_command("record", "-o", "p.pb.gz", ruby, path).map { |word| "'#{word}'" }.join(" ")
    script = write_file("job.sh", "set -m\n#{command}\necho \"stopped: $?\"\nfg >/dev/null\necho \"ended: $?\"\n")
    said = +""
    PTY.spawn(clean_environment, "/bin/sh", script, chdir: directory) do |output, input, pid|
      hear = lambda do |text|
        wait_until(text) do
          said << output.readpartial(1000) if output.wait_readable(0)
          said.include?(text)
        end
      end
      hear["ready"]
      input.write("\x1a")
      hear["stopped: #{128 + Signal.list["TSTP"]}"]
      input.write("7\n")
      hear["ended: 7"]
    ensure
      Process.kill(:KILL, pid) unless said.include?("ended")
    end
    expect(said).to include("wrote p.pb.gz")
  end

  it "by SIGKILL is by that signal, with a line about the profile" do
    outcome = record("Process.kill(:KILL, $$); sleep")
    expect(outcome.status.termsig).to eq(Signal.list["KILL"])
    expect(outcome.stderr).to match(/\Arperf: '.*' was ended by SIGKILL before its profile could be written\n\z/)
    expect(File).not_to exist(path_to("p.pb.gz"))
  end

  ["exec('sh', '-c', 'echo $0 $1; exit 5', 'new', 'x')", "Process.exec({ 'A' => '1' }, 'echo new x; exit 5')",
   "Kernel.exec('echo new x; exit 5', out: :out)"].each do |program|
    it "by #{program[/\A[\w.]+/]} writes the part until then" do
      outcome = record(program)
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([5, "new x\n"])
      expect(outcome.messages).to contain_exactly(
        /wrote p\.pb\.gz/, /became another program by exec; only the part before that was profiled/
      )
      expect_profile
    end
  end

  ["exit!(3)", "Process.exit!(3)", "exec('sh', '-c', 'exit 3')"].each do |call|
    it "by #{call[/\A\S+?(?=\()/]} in another Ractor is that of the program alone, without a profile" do
      outcome = record("Warning[:experimental] = false; Ractor.new { #{call} }; sleep")
      expect(outcome.status.exitstatus).to eq(3)
      expect(outcome.stderr).to match(/\Arperf: '.*' ended before its profile could be written\n\z/)
    end
  end

  it "isn't caused by a signal that is ignored, as by nohup" do
    path = write_file("program.rb", "Process.kill(:HUP, $$, Process.ppid); sleep 0.05; exit 6")
    command = "trap '' HUP; exec '#{ruby}' '#{Commands::ROOT}/exe/rperf' record '#{ruby}' '#{path}'"
    outcome = run("/bin/sh", "-c", command)
    expect([outcome.status.exitstatus, outcome.stderr]).to match([6, /\Arperf: wrote rperf\.data/])
  end

  # The system keeps no statuses then of those who have ended. A shell such as dash handles it all the same.
  it "is known where SIGCHLD is ignored, as it is for the program", if: File.exist?("/proc/self/status") do
    path = write_file("program.rb", "puts File.read('/proc/self/status')[/^SigIgn.*/], trap('CHLD', 'DEFAULT'); exit 6")
    alone, recorded = [[ruby, path], rperf_command("record", ruby, path)].map do |command|
      run("bash", "-c", "trap '' CHLD; exec \"$@\"", "bash", *command)
    end
    expect(recorded.stderr).to match(/\Arperf: wrote rperf\.data/)
    expect([recorded.status.exitstatus, recorded.stdout]).to eq([6, alone.stdout])
  end

  it "has what it starts ignore SIGPIPE, if the command was started so", if: File.exist?("/proc/self/status") do
    # Ruby leaves it ignored, and so does exec.
    path = write_file("program.rb", "exec('grep', '^SigIgn', '/proc/self/status')")
    ["trap '' PIPE", "trap - PIPE"].each do |trap|
      alone, recorded = [[ruby, path], rperf_command("record", ruby, path)].map do |command|
        run("bash", "-c", "#{trap}; exec \"$@\"", "bash", *command)
      end
      ignored = [alone, recorded].map { |outcome| outcome.stdout[/\h{16}/].hex[Signal.list["PIPE"] - 1] }
      expect(ignored).to all(eq(trap.include?("''") ? 1 : 0))
    end
  end

  it "is that of a program that handles a signal by now which it had inherited as ignored" do
    program = "puts trap('INT') { puts :got; exit 6 }; $stdout.flush; sleep"
    path = write_file("program.rb", program)
    # As a script does it: its shell has what runs in the background ignore INT and QUIT.
    command = "'#{ruby}' '#{Commands::ROOT}/exe/rperf' record '#{ruby}' '#{path}' & echo $! >pid; wait $!"
    outcome = run("/bin/sh", "-c", command) { Process.kill(:INT, File.read(path_to("pid")).to_i) }
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([6, "IGNORE\ngot\n"])
    expect(outcome.stderr).to match(/\Arperf: wrote rperf\.data/)
  end

  it "isn't a failing exec" do
    outcome = record(<<~RUBY)
      def after = (i = 0; i += 1 while i < 10_000_000)
      begin
        exec("no-such-program")
      rescue Errno::ENOENT
        after
      end
      exit 2
    RUBY
    expect(outcome.status.exitstatus).to eq(2)
    expect(outcome.messages.join).not_to include("another program")
    expect(weight_of(read_profile(path_to("p.pb.gz")), "after")).to be > 0
  end

  it "isn't that of a forked child, which says nothing" do
    outcome = record("at_exit { puts 'end' }; pid = fork { exit 4 }; Process.wait(pid); exit($?.exitstatus + 1)")
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([5, "end\nend\n"])
    expect(outcome.messages.size).to eq(1)
    expect_profile
  end

  it "is the daemon's parent's for a daemon" do
    expect(record("Process.daemon; sleep 3").messages)
      .to contain_exactly(/wrote p\.pb\.gz/, /1 process still ran; its samples are not in the profile/)
    expect_profile
  end

  it "is what rperf stat's figures reach up to" do
    program = write_file("program.rb", <<~RUBY)
      Rperf.const_get(:NativeProfile).prepend(Module.new do
        def write(...)
          50.times { GC.start }
          super
        end

        def deliver(...)
          50.times { GC.start }
          super
        end
      end)
    RUBY
    [run(*rperf_command("stat", ruby, program)),
     run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program,
         env: { "RPERF_ENABLED" => "1", "RPERF_STAT" => "1", "RPERF_OUTPUT" => "p.pb.gz" })].each do |outcome|
      expect(outcome.stderr[/GC time \((\d+) collection/, 1].to_i).to be < 50
    end
  end

  it "isn't that of a program that fails to become a daemon" do
    outcome = record(<<~RUBY)
      # What rperf has wrapped.
      def Process.__rperf_forking_daemon(*) = raise(Errno::EAGAIN)
      Process.daemon rescue puts($!.class)
      puts File.readlines(File.join(ENV["RPERF_SESSION"], "status")).grep(/daemon/).map { |line| line[/\\S+/] }
      def after = (i = 0; i += 1 while i < 10_000_000)
      after
    RUBY
    expect(outcome.stdout).to eq("Errno::EAGAIN\ndaemon\ndaemon-failed\n")
    expect(weight_of(read_profile(path_to("p.pb.gz")), "after")).to be > 0
  end

  ["exit", "exit!"].each do |call|
    it "by #{call} is announced, and then delivered" do
      outcome = record(<<~RUBY)
        Rperf.const_get(:Native).singleton_class.prepend(Module.new do
          def finish(*)
            super
            $stdout.syswrite(File.readlines(File.join(ENV["RPERF_SESSION"], "status")).map { |line| line[/\\S+ /] }.join)
          end
        end)
        at_exit { #{call} }
        #{call}
      RUBY
      expect(outcome.stdout).to start_with("started ending delivered ")
      expect_profile
    end
  end

  it "leaves exec and exit! as they were to look at" do
    program = <<~RUBY
      p [Kernel, Process].map { |owner| [owner.method(:exec).arity, owner.method(:exit!).arity] }
      p Kernel.private_method_defined?(:exec), Kernel.private_method_defined?(:exit!), 1.respond_to?(:exec)
    RUBY
    expect(record(program).stdout).to eq(alone(program).stdout)
  end

  it "doesn't wait for the rest of a program that it didn't start" do
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "exit 3")
    expect([outcome.status.exitstatus, outcome.stderr, Dir.children(directory).grep(/rperf/)]).to eq([3, "", []])
  end

  describe "with a session of its own" do
    def run_script(text, env: {}) = run(ruby, "-I#{Commands::ROOT}/lib", write_file("own.rb", text), env:)

    it "lets at_exit blocks that were there before rperf stop the session" do
      outcome = run_script(<<~RUBY)
        at_exit { print [Rperf.running?, Rperf.stop.is_a?(Hash), File.exist?("own.pb.gz")] }
        require "rperf"
        Rperf.start(output: "own.pb.gz")
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["[true, true, true]", ""])
    end

    it "is its own when a session that began in such a block is never stopped" do
      outcome = run_script(<<~RUBY)
        at_exit do
          Rperf.start(mode: :wall, frequency: 10_000)
          3.times { Thread.new { loop { Array.new(100) { "x" * 50 } } } }
          200_000.times { |number| number + 1 }
          GC.start
          exit 4
        end
        require "rperf"
        $kept = Array.new(10_000) { Object.new }
        ObjectSpace.define_finalizer(Object.new, proc { 1000.times { "x" * 100 } })
      RUBY
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([4, ""])
    end

    it "is its own when the VM frees everything at its end" do
      3.times do
        outcome = run_script(<<~RUBY, env: { "RUBY_FREE_AT_EXIT" => "1" })
          $VERBOSE = nil
          require "rperf"
          Rperf.start(mode: :wall, frequency: 10_000)
          50_000.times { "x" * 50 }
          exit 4
        RUBY
        expect([outcome.status.exitstatus, outcome.stdout]).to eq([4, ""])
      end
    end

    it "isn't changed by a Thread.list of the program's" do
      outcome = run_script(<<~RUBY)
        require "rperf"
        def Thread.list = [1, "x", nil]
        done = Queue.new
        Rperf.start(mode: :wall)
        sleeper = Thread.new { sleep 0.05 until done.closed? }
        sleep 0.1
        data = Rperf.stop
        done.close
        sleeper.join
        print data[:samples].map { |row| row[2] }.uniq.size
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["2", ""])
    end
  end
end
