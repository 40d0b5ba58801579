# frozen_string_literal: true

RSpec.describe "the rperf command" do
  describe "help and version" do
    it "prints help for itself and for each command to stdout" do
      outcome = rperf("--help")
      expect(outcome.status).to be_success
      expect(outcome.stdout).to include("record", "stat", "Examples:")
      expect(outcome.stdout).not_to include("\e[")
      expect(outcome.stdout).to end_with("\nRun 'rperf help' for full documentation.\n")
      %w[record stat exec].each do |command|
        help = ["--frequency", "[default: 1000]", "--lines", "--no-lines", "--capture <tick|safepoint>",
                "--signal <N|false>", "--no-aggregate", "--no-inherit", "Exit status:",
                "Run 'rperf help' for full documentation"]
        expect(rperf(command, "--help").stdout).to include(*help)
      end
    end

    it "lists commands and topics with rperf help, a line for each" do
      outcome = rperf("help")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      listed = outcome.stdout.scan(/^  (\S+) {2,}\S.*$/).flatten
      pages = Dir[File.join(Commands::ROOT, "docs/guide/*.md")].map { |path| File.basename(path, ".md") } - ["README"]
      expect(listed).to match_array(%w[record report diff why stat exec trace ps stacks memory heap leak top attach
                                       snapshot push serve help all] +
                                    pages)
    end

    it "prints everything with rperf help all" do
      outcome = rperf("help", "all")
      expect(outcome.status).to be_success
      expect(outcome.stderr).to be_empty
      titles = ["RPERF RECORD", "RPERF STAT", "RPERF EXEC", "RPERF REPORT", "RPERF DIFF", "MODES", "FORMATS", "STATES",
                "CAPTURE", "VIEWS", "COMPARING", "CHILD-PROCESSES", "RUBY-API", "ENVIRONMENT-VARIABLES", "LABELS"]
      expect(outcome.stdout.scan(/^== (.*) ==$/).flatten).to include(*titles)
      expect(outcome.stdout).to include(rperf("stat", "--help").stdout.strip)
    end

    it "tells in rperf help of all that there is to call from Ruby" do
      help = rperf("help", "all").stdout
      methods = Rperf.singleton_methods(false)
      expect(methods).to include(:start, :stop, :save, :label, :labels, :profile, :snapshot, :running?)
      expect(help).to include(*methods.map { |name| "Rperf.#{name}" })
      keywords = Rperf.const_get(:NativeSettings).table.filter_map { |setting| setting[:keyword] }
      expect(keywords).to include("frequency:", "inherit:")
      expect(rperf("help", "ruby-api").stdout).to include(*keywords.map { |name| "\n#{name} " })
      expect(help).to include("Rperf.snapshot(clear: true)", "Rperf::RackMiddleware, label_key:", "label: ->(env)",
                              "Rperf::ActiveJobMiddleware", "Rperf::SidekiqMiddleware")
      data = Rperf.start { Rperf.label(a: 1) { spin(0.1) } }
      expect(help).to include(*data.keys.map { |key| ":#{key}" })
    end

    it "prints a page of the guide with rperf help TOPIC, by its name and by other words for it" do
      outcome = rperf("help", "child-processes")
      expect(outcome.status).to be_success
      expect(outcome.stdout).to start_with("Which child processes are profiled, and why are some missing?\n\n")
      expect(outcome.stdout).to include("    rperf report --by label:%pid app.pb.gz\n",
                                        "- children that C code forks", ":fork")
      expect(outcome.stdout).not_to match(/\*\*|```|\]\(|\e\[/)
      %w[fork children Child_Processes].each { |name| expect(rperf("help", name).stdout).to eq(outcome.stdout) }
    end

    it "prints the help of one command with rperf help COMMAND" do
      expect(rperf("help", "exec").stdout).to eq(rperf("exec", "--help").stdout)
    end

    it "says of a topic that isn't there which are nearest" do
      { "rekord" => "; did you mean record or report?", "labelz" => "; did you mean labels?", "" => "" }
        .each do |name, hint|
          outcome = rperf("help", name)
          expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr])
            .to eq([2, "", "rperf: there is no command or topic '#{name}'#{hint} ('rperf help' lists them)\n"])
        end
    end

    it "has the environment variables of the guide" do
      page = File.read(File.join(Commands::ROOT, "docs/guide/environment-variables.md"))
      told = page.scan(/^\| `(RPERF_\w+)`/).flatten
      expect(told.size).to be >= 15
      expect(rperf("help", "environment-variables").stdout.scan(/^(RPERF_\w+) /).flatten).to match_array(told)
    end

    it "prints its version" do
      expect(rperf("--version").stdout).to eq("rperf #{Rperf::VERSION}\n")
    end

    it "prints help to stderr and fails without a command" do
      outcome = rperf
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
      expect(outcome.stderr).to include("Usage: rperf")
    end
  end

  describe "what can't be run" do
    {
      %w[record -f 0 true] => "-f must be a whole number from 1 to 10000 (samples per second), not '0'",
      %w[record -f -5 true] => "-f must be a whole number from 1 to 10000 (samples per second), not '-5'",
      ["stat", "-o", "", "true"] => "-o must be the path of a file, not ''",
      %w[record -o /dev/fd/987 true] => "-o must be open for writing, not '/dev/fd/987'",
      %w[exec --signal 9
         true] => /--signal must be false \(no signal\) or a number from \d+ to \d+ \(a real-time signal\), not '9'/,
      %w[record -m gpu true] => "-m must be cpu, wall or trace, not 'gpu'",
      %w[stat -m gpu true] => "-m must be cpu or wall, not 'gpu'",
      %w[record --format svg true] => "--format must be pprof, collapsed, text, markdown, json, html, dot, " \
                                      "callgrind or spans, not 'svg'",
      %w[record -o no/ true] => "-o must be a file, without a '/' at the end, not 'no/'",
      %w[record -o /no/such/p true] => "-o must be in a directory that exists, not '/no/such/p'",
      %w[record -p -o p true] => "-p prints text to stdout: it can't be combined with -o or --format"
    }.each do |arguments, message|
      it "refuses #{arguments.join(" ")} in one line" do
        outcome = rperf(*arguments)
        expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /\Arperf: #{Regexp.union(message)}\n\z/])
      end
    end

    it "takes no flag for a path or for labels" do
      { "-o" => "--output", "--labels" => "--labels" }.each do |flag, name|
        outcome = rperf("record", flag, "-v", ruby, "-e", "1")
        expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /\Arperf: '#{name}\b.*' needs a value; /])
      end
      expect(Dir.children(directory)).to match_array(%w[.stdout .stderr])
    end

    it "refuses unknown options and a missing command" do
      expect(rperf("record", "--bogus", "true").status.exitstatus).to eq(2)
      outcome = rperf("stat")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /COMMAND/])
    end

    it "tells commands that aren't there from files that are no programs" do
      outcome = rperf("record", "no-such-command")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([127, "rperf: command not found: no-such-command\n"])
      write_file("app.rb", "")
      outcome = rperf("stat", "./app.rb")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to eq([126, "rperf: can't be executed: ./app.rb (did you mean 'ruby ./app.rb'?)\n"])
    end

    it "says so if the command runs no Ruby program, and keeps a status other than 0" do
      [["true"], [ruby, "-v"]].each do |command|
        outcome = rperf("record", *command)
        line = "rperf: '#{command.first}' ran no Ruby program that rperf could profile; nothing was recorded\n"
        expect([outcome.status.exitstatus, outcome.stderr]).to eq([1, line])
      end
      expect(rperf("stat", "sh", "-c", "exit 7").status.exitstatus).to eq(7)
      expect(File).not_to exist(path_to("rperf.data"))
    end

    it "fails instead of succeeding if no profile is left of what ran" do
      outcome = rperf("record", "sh", "-c", "'#{ruby}' -e 'Process.kill(:KILL, $$); sleep'; exit 0")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /ended before its profile could be written\n\z/])
      expect(File).not_to exist(path_to("rperf.data"))
    end

    it "fails if a profile can't be read, and keeps that" do
      write_file("run.rb", <<~RUBY)
        Process.wait(fork { 1 })
        File.write(Dir["\#{ENV["RPERF_SESSION"]}/*.pb.gz"].first, "no profile")
      RUBY
      outcome = rperf("record", "-o", "p.pb.gz", ruby, "run.rb")
      expect(outcome.status.exitstatus).to eq(1)
      expect(outcome.messages).to include(/the profile of process \d+ can't be merged \(not a pprof .*; it is in /)
      kept = outcome.stderr[%r{it is in (/\S.*)$}, 1]
      expect(File.read(kept)).to eq("no profile")
      expect(kept).to start_with("#{temporary_directory}/rperf-")
      expect(read_profile(path_to("p.pb.gz"))).to include(mode: :cpu)
    end
  end

  describe "rperf record" do
    it "writes rperf.data in cpu mode and says so" do
      outcome = rperf("record", ruby, "-e", "i = 0; i += 1 while i < 3_000_000; puts 'done'")
      expect(outcome.status).to be_success
      expect(outcome.stdout).to eq("done\n")
      expect(outcome.stderr).to match(/\Arperf: wrote rperf\.data \([\d,]+ samples, [\d.]+ s\)\n\z/)
      expect(read_profile(path_to("rperf.data"))).to include(mode: :cpu, frequency: 1000)
    end

    it "takes mode, frequency, file and format" do
      options = ["-m", "wall", "-f", "100", "-o", "p.dat", "--format", "collapsed"]
      rperf("record", *options, ruby, "-e", "sleep 0.05")
      expect(File.read(path_to("p.dat"))).to match(/^<main>;Kernel#sleep;\[GVL blocked\] \d{8,9}$/)
    end

    it "refuses the name of a file that a profile isn't, before the program runs" do
      outcome = rperf("record", "-o", "x.html", ruby, "-e", "puts 1")
      expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr])
        .to eq([2, "", "rperf: -o x.html: a profile is no .html: record into x.pb.gz, then " \
                       "'rperf report x.pb.gz -o x.html'\n"])
      expect(rperf("stat", "-o", "x.png", ruby, "-e", "puts 1").stderr)
        .to start_with("rperf: -o x.png: rperf writes no .png: ")
      expect(Dir.children(directory).grep_v(/\A\./)).to be_empty
      rperf("record", "--format", "html", "-o", "x.html", ruby, "-e", "1")
      expect(File.read(path_to("x.html"))).to match(/\A<!doctype html/i)
    end

    it "prints a text profile after the program's output with -p" do
      outcome = rperf("record", "-p", "-m", "wall", ruby, "-e", "puts 'mine'; sleep 0.05")
      expect(outcome.stdout).to match(/\Amine\nTotal: .*\[GVL blocked\]/m)
      expect(outcome.stderr).to be_empty
      expect(Dir.children(directory).grep_v(/\A\./)).to be_empty
    end

    describe "about lines", vm: true do
      before { write_file("app.rb", "def work\n  i = 0\n  i += 1 while i < 3_000_000\nend\n\nwork\n") }

      it "adds the hottest ones to text with --lines, by the short paths of their files" do
        table = rperf("record", "-p", "--lines", ruby, "app.rb").stdout[/^Lines:\n.*/m]
        expect(table.lines[2]).to match(/^ +([\d,.]+ ms +[\d.]+%) +\1  app.rb:3 \(Object#work\)$/)
        expect(table).to match(/^ +[\d,.]+ ms +[\d.]+% +[\d,.]+ ms +[\d.]+%  app.rb:6 \(<main>\)$/)
      end

      it "records the absolute paths of their files" do
        rperf("record", "--lines", ruby, "app.rb")
        table = rperf("report", "--text", "--lines", "--full-path").stdout[/^Lines:\n.*/m]
        expect(table).to match(/  #{Regexp.escape(path_to("app.rb"))}:3 \(Object#work\)$/)
      end

      it "has them in every pprof file, but not with --no-lines" do
        rperf("record", ruby, "app.rb")
        rperf("record", "-o", "none.pb.gz", "--lines", "--no-lines", ruby, "app.rb")
        profiles = %w[rperf.data none.pb.gz].map { |file| Rperf.load(path_to(file)) }
        tables = profiles.map { |profile| text_report(profile, lines: true) }
        expect(tables).to match([/app\.rb:3 \(Object#work\)$/, /^Lines: none were recorded$/])
      end
    end

    # An emulator has numbers of its own for real-time signals.
    it "has the timer use the signal that --signal names", if: File.exist?("/proc/self/timers"), emulated: false do
      signals = %w[40 41].map do |number|
        program = "puts File.read('/proc/self/timers')[%r{^signal: (\\d+)/}, 1]"
        rperf("record", "--signal", number, ruby, "-e", program).stdout.chomp
      end
      expect(signals).to eq(%w[40 41])
    end

    it "keeps single samples with --no-aggregate, of which there are no snapshots" do
      program = "begin; p Rperf.snapshot.is_a?(Hash); rescue Rperf::Error => e; puts e.message; end"
      said = [["--no-aggregate"], []].map { |options| rperf("record", *options, ruby, "-e", program).stdout }
      expect(said).to eq(["there are no snapshots of a session with aggregate: false\n", "true\n"])
    end

    it "takes stacks as --capture says, whatever the environment does", vm: true, if: RUBY_PLATFORM.include?("linux") do
      program = "ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.2
                 nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
                 print Rperf.snapshot[:tick_stacks].positive?"
      taken = [[], %w[--capture tick], %w[--capture safepoint], %w[--signal false]].map do |options|
        rperf("record", *options, ruby, "-e", program, env: { "RPERF_CAPTURE" => "7" }).stdout
      end
      expect(taken).to eq(%w[true true false false])
    end

    it "refuses --capture tick without timer signals" do
      outcome = rperf("record", "--capture", "tick", "--signal", "false", ruby, "-e", "1")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /\Arperf: --signal false goes with .*\n\z/])
      outcome = rperf("record", "--capture", "safepoint", "--signal", "false", ruby, "-e", "1")
      expect(outcome.messages).to contain_exactly(/wrote rperf\.data/)
    end

    it "adds to what a redirected stdout, stderr or other descriptor leads to" do
      { "/dev/stdout" => 1, "/dev/stderr" => 2, "/dev/fd/3" => 3 }.each do |output, number|
        File.open(path_to("log"), "w") do |log|
          log.syswrite("before\n")
          pid = spawn(*rperf_command("record", "-o", output, "--format", "text", ruby, "-e", "puts 'mine'"),
                      { chdir: directory, 1 => File::NULL }.merge(number => log))
          Process.wait(pid)
          log.syswrite("after\n")
        end
        expect(File.read(path_to("log"))).to match(/\Abefore\n#{"mine\n" if number == 1}Total: .*after\n\z/m)
      end
    end

    it "says where the profile is if stdout is closed" do
      command = "exec '#{ruby}' '#{Commands::ROOT}/exe/rperf' record -p '#{ruby}' -e 1 >&-"
      outcome = run("/bin/sh", "-c", command)
      expect(outcome.messages).to contain_exactly(%r{can't write the profile to /dev/stdout .*it is in /})
      saved = outcome.stderr[%r{it is in (/\S+)}, 1]
      expect(read_profile(saved)).to include(mode: :cpu)
    ensure
      File.delete(saved) if saved
    end

    it "prints statistics with -v" do
      outcome = rperf("record", "-v", ruby, "-e", "sleep 0.01")
      expect(outcome.stderr).to match(/^\[rperf\] mode=cpu frequency=1000Hz\n.*^rperf: wrote rperf\.data/m)
    end

    it "leaves input, output and arguments alone" do
      bytes = Random.new(1).bytes(100_000)
      program = "$stdout.binmode; $stdin.binmode; $stdout.write($stdin.read); $stderr.puts ARGV.inspect"
      outcome = rperf("record", ruby, "-e", program, "--", "-o", "--", "a b", input: bytes)
      expect(outcome.stdout == bytes).to be(true)
      expect(outcome.stderr.lines.first).to eq("#{["-o", "--", "a b"].inspect}\n")
    end

    it "writes to the directory that it was started in, wherever the program goes" do
      rperf("record", "-o", "p.pb.gz", ruby, "-e", "Dir.chdir('/')")
      expect(read_profile(path_to("p.pb.gz"))).to include(mode: :cpu)
    end

    it "gives the program the environment that it would have with --no-inherit" do
      program = "puts ENV.select { |name, _| name.start_with?('RPERF', 'RUBY') }.sort.inspect"
      [{}, { "RUBYOPT" => "-W0", "RUBYLIB" => "/some/where" }].each do |env|
        outcome = rperf("record", "--no-inherit", ruby, "-e", program, env:)
        expect(outcome.stdout).to eq(run(ruby, "-e", program, env:).stdout)
      end
    end

    it "adds a variable and a part of RUBYOPT for the program's children" do
      program = "puts ENV.reject { |name, _| name == '_' }.to_h.inspect"
      env = { "RUBYOPT" => "-W0", "RUBYLIB" => "/some/where", "RPERF_MODE" => "wall" }
      seen = eval(rperf("record", ruby, "-e", program, env:).stdout) # rubocop:disable Security/Eval
      alone = eval(run(ruby, "-e", program, env:).stdout) # rubocop:disable Security/Eval
      expect(seen["RUBYOPT"]).to match(/\A-r\S+ -W0\z/)
      expect(seen.keys - alone.keys).to eq(["RPERF_SESSION"])
      expect(alone.reject { |name, value| seen[name] == value }.keys).to contain_exactly("RUBYOPT", "RPERF_MODE")
    end

    it "starts without a Ruby by a link to its executable, and says what it misses elsewhere" do
      executable = File.join(Commands::ROOT, "lib/rperf/bin/rperf-command")
      File.symlink(executable, path_to("rperf"))
      expect(run(path_to("rperf"), "--version", env: { "PATH" => "" }).stdout).to eq(rperf("--version").stdout)
      outcome = run(path_to("rperf"), "record", ruby, "-e", "1")
      expect(outcome.messages).to contain_exactly(/wrote rperf\.data/)
      FileUtils.cp(executable, path_to("alone"))
      expect(run(path_to("alone"), "report", "--top").stdout).to match(/^ +self /)
      outcome = run(path_to("alone"), "record", ruby, "-e", "puts 'ran'")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([1, ""])
      expect(outcome.stderr).to match(/\Arperf: rperf's Ruby files are not in .*: the command is to stay where .*\n\z/)
    end

    it "says in one line what to do if its executable is missing, or can't be run" do
      FileUtils.cp_r(%w[lib exe].map { |part| File.join(Commands::ROOT, part) }, directory)
      executable = path_to("lib/rperf/bin/rperf-command")
      FileUtils.chmod(0o644, executable)
      outcome = run(ruby, path_to("exe/rperf"), "--version")
      line = "rperf: #{executable} can't be run: Permission denied\n"
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([1, line])
      FileUtils.rm(executable)
      outcome = run(ruby, path_to("exe/rperf"), "--version")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([1, ""])
      expect(outcome.stderr).to eq("rperf: #{executable} is missing: install the gem again, or run bin/rperf, " \
                                   "which builds it, in a checkout\n")
    end

    # As the gem for glibc is on a system with musl: the kernel says of the linker that the file isn't there.
    it "says in one line that its executable is for another system, with another dynamic linker",
       emulated: false, if: RUBY_PLATFORM.include?("linux") do
      FileUtils.cp_r(%w[lib exe].map { |part| File.join(Commands::ROOT, part) }, directory)
      executable = path_to("lib/rperf/bin/rperf-command")
      program = File.binread(executable)
      linker = program[%r{/[\w./-]*/ld-[\w.-]+\0}n]
      skip "the command needs none" unless linker
      File.binwrite(executable, program.sub(linker, "/nowhere".ljust(linker.size, "\0")))
      outcome = run(ruby, path_to("exe/rperf"), "--version")
      line = "rperf: #{executable} is for another system than #{RUBY_PLATFORM}: install the gem again\n"
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([1, line])
    end

    it "tells a program that wants its own session who profiles it" do
      outcome = rperf("record", ruby, "-e", "Rperf.start")
      expect(outcome.stderr).to include("this program is already being profiled by rperf record (Rperf::Error)")
    end

    it "profiles the first Ruby of a command and counts the others with --no-inherit" do
      write_file("twice.sh", "'#{ruby}' -e 'def first = sleep(0.02); first'\n'#{ruby}' -e 1\n")
      outcome = rperf("record", "--no-inherit", "-m", "wall", "sh", "twice.sh")
      expect(outcome.messages).to contain_exactly(/wrote/, "rperf: one more Ruby ran; only the first was profiled\n")
      expect(weight_of(read_profile(path_to("rperf.data")), "first")).to be > 0
    end

    it "fails instead of succeeding if the file can't be written" do
      Dir.mkdir(path_to("gone"))
      outcome = rperf("record", "-o", "gone/p.pb.gz", ruby, "-e", "Dir.rmdir('gone')")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /can't write the profile to/])
    end

    it "says where the profile is if the file can't be written at the end" do
      Dir.mkdir(path_to("gone"))
      outcome = rperf("record", "-o", "gone/p.pb.gz", ruby, "-e", "Dir.rmdir('gone'); exit 4")
      expect([outcome.status.exitstatus, outcome.stderr.lines.size]).to eq([4, 1])
      saved = outcome.stderr[%r{it is in (/\S+)}, 1]
      expect(read_profile(saved)).to include(mode: :cpu)
    ensure
      File.delete(saved) if saved
    end
  end

  describe "rperf exec" do
    it "prints what rperf stat --report does, in wall mode, and writes no file" do
      outcome = rperf("exec", ruby, "-e", "sleep 0.05; print 'mine'")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, "mine"])
      expect(outcome.stderr).to include("Performance stats for", "GVL blocked", "Flat:", "Cumulative:")
      expect(Dir.children(directory).grep_v(/\A\./)).to be_empty
    end

    it "takes mode, frequency, file and -v" do
      options = ["-m", "cpu", "-f", "50", "-o", "p.pb.gz", "-v", "--signal", "false", "--no-aggregate"]
      outcome = rperf("exec", *options, ruby, "-e", "i = 0; i += 1 while i < 3_000_000")
      expect(outcome.stderr).to match(/^\[rperf\] mode=cpu frequency=50Hz$.*^Flat:/m)
      expect(read_profile(path_to("p.pb.gz"))).to include(mode: :cpu, frequency: 50)
    end
  end

  describe "rperf stat" do
    it "prints where the time went to stderr and writes no file" do
      outcome = rperf("stat", ruby, "-e", "sleep 0.2; i = 0; i += 1 while i < 2_000_000")
      expect(outcome.stdout).to be_empty
      expect(outcome.stderr).to match(/^ Performance stats for '.*-e sleep 0\.2; .*':$/)
      ["ms          user", "ms          sys", "ms          real", "CPU execution", "GVL blocked (I/O, sleep)",
       "GC time (", "allocated objects", "freed objects", "peak memory (maxrss)", "context switches (",
       "profiler overhead"].each { |row| expect(outcome.stderr).to include(row) }
      expect(Dir.children(directory).grep_v(/\A\./)).to be_empty
    end

    it "accounts for the real time of a program with one thread", vm: true, alone: true do
      page = rperf("stat", ruby, "-e", "sleep 0.3").stderr
      rows = page.scan(/^ +([\d,.]+) ms +(?:[\d.]+%)? +(.+)$/).to_h { |ms, what| [what, ms.delete(",").to_f] }
      parts = rows.select { |what, _| what.match?(/(before|after) profiling|CPU execution|GVL|GC (marking|sweeping)/) }
      expect(parts.values.sum).to be_within(5 + (rows["real"] * 0.02)).of(rows["real"])
      # A busy machine wakes it late, but not early.
      expect(rows["[Ruby] GVL blocked (I/O, sleep)"]).to be_between(295, 900)
    end

    it "shows the command's times as the time command does, with what is no Ruby" do
      busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
      page = rperf("stat", "sh", "-c", "sleep 0.3; '#{ruby}' -e 1; sh -c '#{busy}'; sleep 0.2").stderr
      rows = page.scan(/^ +([\d,.]+) ms +(.+?)(?: \(.*)?$/).to_h { |ms, what| [what, ms.delete(",").to_f] }
      expect(rows["before profiling"]).to be > 300
      expect(rows["after profiling"]).to be > 200
      expect(rows["real"]).to be > rows["before profiling"] + rows["after profiling"]
      before = Process.times.cutime
      system("sh", "-c", busy)
      expect(rows["user"]).to be > (Process.times.cutime - before) * 1000 / 2
    end

    it "adds tables and a file when asked" do
      outcome = rperf("stat", "--report", "-o", "p.pb.gz", ruby, "-e", "sleep 0.02")
      expect(outcome.stderr).to include("Flat:", "Cumulative:")
      expect(read_profile(path_to("p.pb.gz"))).to include(mode: :wall)
    end

    it "adds the hottest lines to the tables with --lines" do
      outcome = rperf("stat", "--report", "--lines", ruby, "-e", "sleep 0.05")
      expect(outcome.stderr).to match(/^Cumulative:\n.*^Lines:\n.* -e:1 \(<main>\)$/m)
      expect(rperf("stat", "--lines", ruby, "-e", "1").stderr).not_to include("Lines:")
    end

    it "shows YJIT and threads", vm: true do
      program = "4.times.map { Thread.new { 2000.times { |i| i.to_s } } }.each(&:join)"
      page = rperf("stat", ruby, "--yjit", "-e", program).stderr
      expect(page).to match(/\d \s+\[Ruby\] detected threads/)
      expect(page).to include("YJIT") if defined?(RubyVM::YJIT)
    end
  end
end
