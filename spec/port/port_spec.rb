# frozen_string_literal: true

# The port of a running program: how it comes, what it says and how it goes.
RSpec.describe "The port of a program", vm: true do
  include Ports

  # The kernel's command line is QEMU's, and a title doesn't change that.
  it "tells the command line without the blanks that a short title leaves",
     if: RUBY_PLATFORM.include?("linux"), emulated: false do
    listening("$0 = 'app'; puts Rperf.listen; sleep") do |program|
      answer = UNIXSocket.open(program.lines.first) do |port|
        port.write("GET /debug/pprof/cmdline HTTP/1.0\r\n\r\n")
        port.read
      end
      expect(answer.split("\r\n\r\n", 2).last).to eq("app")
    end
  end

  it "is a private socket, at which the program says what it is" do
    listening("puts Rperf.listen; sleep") do |program|
      path = program.lines.first
      expect(File.basename(path)).to match(/\A#{program.pid}-\d+\.sock\z/)
      expect([path, File.dirname(path)].map { |name| File.stat(name).mode & 0o777 }).to eq([0o600, 0o700])
      status, hello = ask(path)
      expect(status).to eq(200)
      expect(hello).to include("pid" => program.pid, "ruby" => RUBY_VERSION, "rperf" => Rperf::VERSION,
                               "session" => nil, "protocol" => 1)
      expect(hello["program"]).to include("Rperf.listen")
    end
  end

  it "is opened once, and removed at the end, also if the program opens it again then" do
    code = <<~RUBY
      at_exit { puts Dir[File.join(#{temporary_directory.dump}, "*", "*.sock")].size, Rperf.listen }
      puts Rperf.listen, Rperf.listen, Dir[Rperf.listen]
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code)
    first, *more, none, again = outcome.stdout.lines(chomp: true)
    expect([more, none, again]).to eq([[first, first], "0", first])
    expect([outcome.stderr, sockets, session_directories]).to eq(["", [], []])
  end

  it "changes nothing that the program can see of itself" do
    watch = <<~RUBY
      def state
        signals = File.read("/proc/self/status").scan(/^Sig(?:Cgt|Ign|Blk):.*/) if File.exist?("/proc/self/status")
        [Thread.list.size, signals, ENV.to_h, ObjectSpace.each_object(Thread).count]
      end
      def memory = File.exist?("/proc/self/status") ? File.read("/proc/self/status")[/^RssAnon:\\s+(\\d+)/, 1].to_i : 0
      state && memory
      GC.disable
      before, own = state, memory
      Rperf.listen
      sleep 0.1
      # In KiB: twice what it is to take at most. QEMU keeps some for each thread.
      own = memory - own
      puts before == state, own < #{128 * Commands::SLOWNESS} || own
      begin
        Thread::Queue.new.pop
      rescue Exception => e
        puts e.class, e.message.lines.first
      end
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", watch)
    expect(outcome.stdout).to eq("true\ntrue\nfatal\nNo live threads left. Deadlock?\n")
  end

  it "answers while the program keeps the GVL" do
    code = "puts Rperf.listen; 10_000_000.times.sum { |i| (i.to_s * 10).count('1') }; sleep"
    listening(code) do |program|
      expect(Array.new(5) { ask(program.lines.first).first }.uniq).to eq([200])
    end
  end

  it "says which session runs" do
    listening("puts Rperf.listen; Rperf.start(mode: :wall, frequency: 99); puts; sleep") do |program|
      wait_until("session") { ask(program.lines.first).last["session"] }
      expect(ask(program.lines.first).last["session"]).to eq("mode" => "wall", "frequency" => 99)
    end
  end

  describe "with RPERF_LISTEN" do
    def lines(value, code = "puts 1")
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env: { "RPERF_LISTEN" => value })
    end

    it "is opened when rperf is loaded" do
      expect(lines("1", "puts Dir['#{temporary_directory}/rperf-*/*.sock'].size").stdout).to eq("1\n")
      expect(lines("0", "puts Dir['#{temporary_directory}/rperf-*/*.sock'].size").stdout).to eq("0\n")
      expect(lines("", "puts Dir['#{temporary_directory}/rperf-*/*.sock'].size").stdout).to eq("0\n")
    end

    it "is in the directory that is named" do
      outcome = lines(directory, "puts Dir['*.sock'].size, Rperf.listen")
      expect(outcome.stdout).to match(%r{\A1\n#{Regexp.escape(directory)}/\d+-\d+\.sock\n\z})
      expect(Dir[path_to("*.sock")]).to be_empty
    end

    it "is left out with a line if it can't be opened, and the program runs" do
      Dir.mkdir(path_to("open"))
      File.chmod(0o777, path_to("open"))
      { "yes" => "RPERF_LISTEN must be 1, 0, the absolute path of a directory or " \
                 "tcp://127.0.0.1:PORT, not 'yes'",
        "/no/such" => "no port: /no/such is no directory that exists",
        path_to("open") => "no port: others may change what is in #{path_to("open")}; choose a directory of yours " \
                           "that only you can write to" }.each do |value, message|
        outcome = lines(value)
        expect(outcome.stdout).to eq("1\n")
        expect(outcome.stderr).to eq("rperf: #{message}; running without a port\n")
      end
    end

    {
      "is open to others" => ->(path) { Dir.mkdir(path, 0o755) },
      "is a link" => ->(path) { File.symlink(Dir.mkdir("#{path}-other", 0o700) && "#{path}-other", path) },
      "is a file" => ->(path) { File.write(path, "") }
    }.each do |what, make|
      it "is left out with a line if the user's directory #{what}, and the program runs" do
        make[File.join(temporary_directory, "rperf-#{Process.uid}")]
        outcome = lines("1", "puts 1, Dir['#{temporary_directory}/**/*.sock']")
        expect(outcome.stdout).to eq("1\n")
        expect(outcome.stderr)
          .to match(/\Arperf: no port: \S+ must be a .* with mode 700; .*; running without a port\n\z/)
      end
    end

    it "is not the rperf command's own" do
      expect(listed(env: { "RPERF_LISTEN" => "1" })).to be_empty
    end
  end

  it "is opened for the Rubies of rperf record --listen" do
    code = "Process.wait(fork { exec(#{ruby.dump}, '-e', 'puts Dir[%q(#{temporary_directory}/rperf-*/*.sock)].size') })"
    outcome = rperf("record", "--listen", "-o", "p.pb.gz", ruby, "-e", code)
    expect([outcome.stdout, outcome.status.exitstatus]).to eq(["2\n", 0])
    expect(sockets).to be_empty
  end

  describe "of a process that forks" do
    it "stays the parent's, and each child has its own" do
      code = <<~RUBY
        puts Rperf.listen
        fork { fork { sleep }; sleep }
        sleep
      RUBY
      listening(code) do |program|
        wait_until("ports") { sockets.size == 3 && sockets.all? { |path| answers?(path) } }
        pids = sockets.map { |path| ask(path).last["pid"] }
        expect(pids.map(&:to_s)).to match_array(sockets.map { |path| File.basename(path)[/\d+/] })
        expect(pids).to include(program.pid)
      end
    end

    it "isn't held open by children" do
      code = <<~RUBY
        path = Rperf.listen
        spawn("sleep", "60")
        fork { Signal.trap("TERM", "IGNORE"); sleep }
        puts path
        sleep
      RUBY
      listening(code) do |program|
        # A port that opens removes those of dead programs: the child's must be open before.
        wait_until("ports") { sockets.size == 2 && sockets.all? { |path| answers?(path) } }
        UNIXSocket.open(program.lines.first) do |port|
          port.timeout = 20
          port.write("GET /v1/hello HTTP/1.1\r\n\r\n")
          port.readpartial(10_000)
          Process.kill(:KILL, program.pid)
          expect(port.read).to eq("")
        end
        wait_until("refusal") { !answers?(program.lines.first) }
        expect { UNIXSocket.open(program.lines.first) }.to raise_error(Errno::ECONNREFUSED)
      end
    end

    it "is nobody else's when children fork at once, and end" do
      code = <<~RUBY
        Rperf.listen
        50.times { Process.wait(fork { fork { sleep }; exit!(0) }) }
        puts
        sleep
      RUBY
      listening(code) do
        # Each grandchild has a port; those of their parents are dead.
        wait_until("ports") { sockets.count { |path| answers?(path) } == 51 }
        rperf("ps")
        expect(sockets.size).to eq(51)
      end
    end

    it "survives many forks with a client" do
      forks = Commands::LONG ? 1000 : 200
      code = <<~RUBY
        puts Rperf.listen
        gets_descriptors = -> { Dir.children("/proc/self/fd").size if File.directory?("/proc/self/fd") }
        before = gets_descriptors.call
        #{forks}.times { Process.wait(fork { exit!(0) }) }
        puts gets_descriptors.call.to_i - before.to_i
        Process.wait(fork { puts Thread.list.size })
        sleep
      RUBY
      listening(code) do |program|
        path = program.lines.first
        asked = 0
        wait_until("end of the forks", limit: 120) do
          expect(ask(path).first).to eq(200)
          asked += 1
          File.read(path_to(".listening1")).lines.size == 3
        end
        expect(asked).to be > 10
        # A client's own connection may be open just then.
        _, descriptors, threads = File.read(path_to(".listening1")).lines.map(&:to_i)
        expect([descriptors, threads]).to match([be_between(-2, 2), 1])
        listed
        expect(sockets).to eq([path])
      end
    end

    it "leaves nothing of children that have become other programs, or were ended, when it ends" do
      code = <<~RUBY
        Rperf.listen
        [-> { exec("true") }, -> { exit!(0) }, -> { Process.kill(:KILL, Process.pid) }].each do |child|
          Process.wait(fork(&child))
        end
        puts Dir[%q(#{temporary_directory}/rperf-*/*.sock)].size
      RUBY
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code)
      expect(Integer(outcome.stdout)).to be > 1
      expect(Dir.children(temporary_directory)).to be_empty
    end

    it "goes over to a daemon", if: Process.respond_to?(:daemon) do
      code = "Rperf.listen; Process.daemon(true, true); File.write('pid', Process.pid.to_s); sleep 60"
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code)
      wait_until("daemon") { File.size?(path_to("pid")) && sockets.any? { |path| answers?(path) } }
      pid = Integer(File.read(path_to("pid")))
      expect(sockets.map { |path| File.basename(path)[/\d+/].to_i }).to eq([pid])
    ensure
      Process.kill(:KILL, pid) if pid
    end
  end

  it "is made anew by a program that the process becomes" do
    code = <<~RUBY
      Rperf.listen
      exec(#{ruby.dump}, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "$stdout.sync = true; puts Rperf.listen; sleep")
    RUBY
    listening(code) do |program|
      expect(ask(program.lines.first).last["pid"]).to eq(program.pid)
      expect(sockets.size).to eq(1)
    end
  end

  it "takes no time if the program closes one of its descriptors", alone: true, if: File.directory?("/proc/self/fd") do
    3.times do |place|
      code = <<~RUBY
        sockets = -> { Dir.children("/proc/self/fd").map(&:to_i).select { |it| File.socket?("/proc/self/fd/\#{it}") } }
        others = sockets.call
        Rperf.listen
        IO.for_fd((sockets.call - others).fetch(#{place})).close
        sleep 0.1
        before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        sleep 0.5
        puts Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
        sleep
      RUBY
      listening(code) { |program| expect(Float(program.lines.first)).to be < 0.02 }
    end
  end

  it "ends if the program closes descriptors that it doesn't know" do
    code = <<~RUBY
      require "socket"
      path = Rperf.listen(helper: true)
      helper = Thread.list.last until helper && helper.name == "rperf" && helper.stop?
      3.upto(200) { |number| (IO.for_fd(number).close rescue nil) }
      files = Array.new(20) { File.open("/dev/null", "w") }
      pairs = Array.new(10) { UNIXSocket.pair.each { |it| it.write("x") } }
      puts path
      sleep 0.01 while helper.alive?
      puts files.map { |file| file.write("x") }.sum, pairs.flatten.map { |it| it.read_nonblock(9) }.join
      sleep
    RUBY
    listening(code) do |program|
      wait_until("further lines") { File.read(path_to(".listening1")).lines.size == 3 }
      # The socket of a thread that waits at it stays open until the thread has woken. Nobody connects before,
      # because that would wake it.
      path = program.lines.first
      wait_until("the end of the socket") { File.foreach("/proc/net/unix").none? { |it| it.include?(path) } }
      expect { UNIXSocket.open(path) }.to raise_error(SystemCallError)
      expect(File.read(path_to(".listening1")).lines.drop(1)).to eq(["20\n", "#{"x" * 20}\n"])
    end
  end

  # The user namespace of an emulated run has one user.
  describe "of another user", if: Process.uid.zero?, emulated: false do
    def as_nobody(code)
      run(ruby, "-rsocket", "-rjson", "-e", "Process::Sys.setgid(65534); Process::Sys.setuid(65534); #{code}")
    end

    it "can't be reached, and refuses who reaches it" do
      File.chmod(0o755, File.dirname(directory), directory)
      listening("puts Rperf.listen(directory: #{directory.dump}); sleep") do |program|
        path = program.lines.first
        expect(as_nobody("UNIXSocket.open(#{path.dump})").stderr).to include("EACCES").or include("Permission denied")
        File.chmod(0o666, path)
        code = "UNIXSocket.open(#{path.dump}) { |port| puts port.readpartial(9999) }"
        expect(as_nobody(code).stdout).to start_with("HTTP/1.1 403").and include("as the user of the program")
        expect(ask(path).first).to eq(200)
      end
    end
  end
end
