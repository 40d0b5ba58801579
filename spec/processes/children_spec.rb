# frozen_string_literal: true

# Processes that a profiled program forks or starts, however it does so.
RSpec.describe "the children of a profiled program", vm: true do
  work = "def work(name) = (i = 0; i += 1 while i < 6_000_000; name)\n"
  define_method(:work) { work }

  # Runs the program in wall mode; its profile goes to p.pb.gz.
  def record(program, *options, env: {}, **, &)
    path = write_file("program.rb", "#{work}RUBY = #{ruby.inspect}\nSELF = $PROGRAM_NAME\n#{program}")
    rperf("record", "-m", "wall", "-o", "p.pb.gz", *options, ruby, path, env:, **, &)
  end

  def merged = read_profile(path_to("p.pb.gz"))

  # %pid => methods and blocks of its samples, of a profile with several processes.
  def frames_by_pid(data = merged)
    data[:samples].each_with_object(Hash.new { |all, pid| all[pid] = [] }) do |(frames, _, _, labels), all|
      all[data[:label_sets][labels][:"%pid"]].concat(frames.map(&:last)).uniq!
    end
  end

  def process_names(data = merged) = data[:label_sets].filter_map { |set| set[:"%process"] }.uniq

  script = ->(code) { "RUBY, '-e', #{"#{work}#{code}".inspect}" }
  # A child that does the work `child`, and a parent that waits for it.
  {
    "fork with a block" => "Process.wait(fork { work(child) })",
    "fork without a block" => "(pid = fork) ? Process.wait(pid) : work(child)",
    "Process.fork, ended by exit!" => "Process.wait(Process.fork { work(child); exit!(0) })",
    "fork in a thread" => "Thread.new { Process.wait(fork { work(child) }) }.join",
    "fork ended by an exception" => "$stderr.reopen(File::NULL); Process.wait(fork { work(child); raise 'oh' })",
    "fork ended by TERM" => <<~RUBY,
      reader, writer = IO.pipe
      pid = fork { work(child); writer.puts; sleep }
      reader.gets
      Process.kill(:TERM, pid)
      Process.wait(pid)
    RUBY
    "Process.spawn" => "Process.wait(spawn(#{script["work(child)"]}))",
    "system" => "system(#{script["work(child)"]})",
    "system with a shell" => "system(\"'\#{RUBY}' child.rb && true\")",
    "backticks" => "`'\#{RUBY}' child.rb`",
    "IO.popen" => "IO.popen([#{script["work(child)"]}], &:read)",
    "IO.popen of itself" => "io = IO.popen('-'); io ? io.read : work(child)",
    "spawn with a changed environment" => "Process.wait(spawn({ 'RUBYLIB' => nil }, #{script["work(child)"]}))",
    "exec in a fork" => "Process.wait(fork { exec(#{script["work(child)"]}) })",
    "exec of a shell in a fork" => "Process.wait(fork { exec(\"'\#{RUBY}' child.rb && true\") })"
  }.each do |way, program|
    it "are profiled if they come by #{way}" do
      write_file("child.rb", "#{work}def child = nil\nwork(child)")
      outcome = record("def child = 1\ndef mine = work(1)\nmine\n#{program.gsub("work(child)", "work(child = 1)")}")
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz \([\d,]+ samples of [23] processes, /)
      busy = frames_by_pid.select { |_, frames| frames.include?("Object#work") }
      expect(busy.size).to eq(2)
      expect(busy.keys).to all(match(/\A\d+\z/))
      expect(busy.count { |_, frames| frames.include?("Object#mine") }).to be >= 1
    end
  end

  it "have one label set for each process, with its number and its name" do
    pids = record(<<~'RUBY').stdout.lines.map(&:chomp)
      puts $$
      $stdout.flush
      pids = 2.times.map { |n| fork { $0 = "worker #{n}"; puts $$; work(n) } }
      pids.each { |pid| Process.wait(pid) }
    RUBY
    expect(own_label_sets(merged).filter_map { |set| set[:"%pid"] }).to match_array(pids)
    expect(process_names).to contain_exactly(path_to("program.rb"), "worker 0", "worker 1")
  end

  it "are not labelled if there are none" do
    expect(record("work(1)").messages).to contain_exactly(/\([\d,]+ samples, [\d.]+ s\)/)
    expect(own_label_sets(merged) - [{}]).to be_empty
  end

  it "may have children, and these too" do
    record("fork { fork { system(RUBY, '-e', 'sleep 0.05'); work(1) }; Process.wait; work(1) }; Process.wait; work(1)")
    expect(frames_by_pid.size).to eq(4)
    expect(frames_by_pid.values.count { |frames| frames.include?("Object#work") }).to eq(3)
  end

  it "are all there if there are 200 short ones" do
    outcome = record("200.times.each_slice(5) { |some| some.map { fork { 1 } }.each { |pid| Process.wait(pid) } }")
    expect(outcome.messages).to contain_exactly(/samples of 201 processes/)
    expect(session_directories).to be_empty
  end

  it "begin with the labels of the fiber that forks them, and go back to none" do
    record(<<~RUBY)
      def after = work(1)
      Rperf.label(job: "a") do
        Process.wait(fork { work(1) })
        Process.wait(fork { Rperf.label(part: 1) { work(1) }; after })
        Thread.new { Process.wait(fork { after }) }.join
        @pid = fork
        work(1) unless @pid
      end
      @pid ? Process.wait(@pid) : after
    RUBY
    labels = merged[:label_sets].map { |set| set.except(:"%pid", :"%process", :"%gc") }
    labels_of = lambda do |method|
      samples = merged[:samples].select { |frames,| frames.any? { |_, name| name == "Object##{method}" } }
      samples.map { |row| labels[row[3]] }.uniq
    end
    expect(labels_of["work"]).to contain_exactly({ job: "a" }, { job: "a", part: "1" }, {})
    expect(labels_of["after"]).to contain_exactly({ job: "a" }, {})
  end

  it "keep labels of their own that are called like ours" do
    record('Rperf.label("%pid": "mine", "label.%process": 1) { work(1); Process.wait(fork { work(2) }) }')
    own = merged[:label_sets].reject(&:empty?).map { |set| set.except(:"%pid", :"%process", :"%gc") }.uniq
    expect(own).to include("label.%pid": "mine", "label.label.%process": "1")
    expect(merged[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size).to eq(2)
  end

  it "go on being profiled after exec, as the same process" do
    outcome = record(<<~RUBY)
      ENV["AGAIN"] ? (work(1); exit 3) : (work(1); ENV["AGAIN"] = "1"; exec(RUBY, SELF, out: :out))
    RUBY
    expect([outcome.status.exitstatus, outcome.messages]).to match([3, [/wrote p\.pb\.gz \([\d,]+ samples, /]])
    expect(merged[:detected_thread_count]).to eq(2)
    weights = merged[:samples].select { |frames, *| frames.any? { |_, name| name == "Object#work" } }
    expect(weights.map { |row| row[2] }.uniq.size).to eq(2)
  end

  it "may be those of a shell that the program becomes by exec" do
    write_file("child.rb", "#{work}work(1)")
    outcome = record("Process.exec('sh', '-c', \"'\#{RUBY}' child.rb; exit 5\")")
    expect([outcome.status.exitstatus, outcome.messages]).to match([5, [/samples of 2 processes/]])
    expect(weight_of(merged, "Object#work")).to be > 0
  end

  it "are left out with --no-inherit" do
    outcome = record("Process.wait(fork { work(1) }); system(RUBY, '-e', '1')", "--no-inherit")
    expect(outcome.messages).to contain_exactly(/\([\d,]+ samples, /)
  end

  it "may be daemons, which are there if they end before the command does" do
    write_file("daemon.rb", "#{work}Process.daemon(true, true)\nwork(1)\nFile.write('ended', '')")
    write_file("run.sh", "'#{ruby}' daemon.rb\nuntil [ -e ended ]; do sleep 0.05; done\n")
    outcome = rperf("record", "-m", "wall", "-o", "p.pb.gz", "sh", "run.sh")
    expect(outcome.messages).to contain_exactly(/samples of 2 processes/)
    expect(weight_of(merged, "Object#work")).to be > 0
  end

  it "deliver although they are stopped together with their parent" do
    program = "reader, writer = IO.pipe\n4.times { fork { work(1); writer.puts; sleep } }\n4.times { reader.gets }\n" \
              "puts\n$stdout.flush\nsleep"
    outcome = record(program) { |pid| Process.kill(:TERM, -pid) }
    expect(outcome.messages.join).to match(/samples of 5 processes/)
    expect(outcome.messages.join).not_to match(/still ran|before its profile/)
    expect(outcome.status.termsig).to eq(Signal.list["TERM"])
  end

  it "are waited for while they write, for longer than those that don't say so" do
    outcome = record(<<~'RUBY')
      fork do
        Rperf.const_get(:NativeProfile).prepend(Module.new { def write(...) = (sleep 0.5; super) })
        work(1)
      end
      sleep 0.01 until File.read(File.join(ENV["RPERF_SESSION"], "status")).include?("ending")
    RUBY
    expect(outcome.messages).to contain_exactly(/samples of 2 processes/)
  end

  # As a gem has it that is built for several versions of Ruby. Another Ruby is played by this one.
  it "run without a profile if rperf isn't built for their version of Ruby" do
    FileUtils.cp_r(%w[lib exe].map { |name| File.join(Commands::ROOT, name) }, directory)
    version = RUBY_VERSION[/\A\d+\.\d+/]
    FileUtils.mkdir(path_to("lib/rperf/#{version}"))
    FileUtils.mv(Dir[path_to("lib/rperf/rperf.*")], path_to("lib/rperf/#{version}"))
    shim = "/tmp/rperf-shim-#{Process.pid}.rb"
    File.write(shim, "Object.send(:remove_const, :RUBY_VERSION); RUBY_VERSION = '9.9.1'")
    path = write_file("program.rb", <<~RUBY)
      other = { "RUBYOPT" => "-W0 -r#{shim} \#{ENV["RUBYOPT"]}" }
      2.times { system(other, #{ruby.inspect}, "-e", "puts 'ran'") }
    RUBY
    outcome = run(ruby, path_to("exe/rperf"), "record", ruby, path)
    expect(outcome.stdout).to eq("ran\nran\n")
    why = "there is none for Ruby 9.9: installing the gem with that Ruby builds it"
    line = "rperf: its extension can't be loaded (#{why}); 'ruby -S rperf' with that Ruby, once it has the gem, " \
           "profiles it; running without profiling\n"
    expect(outcome.messages).to contain_exactly(line, /wrote rperf\.data \(/)
  ensure
    FileUtils.rm_f(shim) if shim
  end

  it "can't start a second session, as their parent can't" do
    program = "Process.wait(fork { begin; Rperf.start; rescue Rperf::Error => e; puts e.message; end; p Rperf.stop })"
    expect(record(program).stdout).to eq("this program is already being profiled by rperf record\nnil\n")
  end

  describe "that are lost" do
    it "since they outlive the command are counted" do
      child = "fork { $stdout.reopen(File::NULL); $stderr.reopen(File::NULL); sleep 60 }"
      outcome = record("puts Array.new(2) { #{child} }; work(1)")
      expect(outcome.messages).to contain_exactly(
        /wrote p\.pb\.gz \([\d,]+ samples, /, "rperf: 2 processes still ran; their samples are not in the profile\n"
      )
      expect(session_directories).to be_empty
    ensure
      outcome&.stdout&.lines&.each { |pid| Process.kill(:KILL, Integer(pid)) }
    end

    it "since they are killed are counted" do
      outcome = record("pid = fork { sleep }; sleep 0.05; Process.kill(:KILL, pid); Process.wait(pid)")
      expect(outcome.messages)
        .to contain_exactly(/wrote/, "rperf: 1 process ended before its profile could be written\n")
    end

    it "since they can't write say so" do
      messages = record(<<~'RUBY').messages
        Process.wait(fork do
          directory = ENV["RPERF_SESSION"]
          begun = File.read(File.join(directory, "status"))[/^started #{$$} \d+ (\d+)/, 1]
          Dir.mkdir(File.join(directory, "#{$$}-#{begun}.pb.gz"))
        end)
      RUBY
      expect(messages).to contain_exactly(/wrote/, /the profile of process \d+ is lost: can't write to .* \(Is a dir/)
    end

    it "since they are killed after an exec that failed are counted, and have the part until then" do
      outcome = record("begin; work(1); exec('no-such-program'); rescue SystemCallError; Process.kill(:KILL, $$); end")
      expect(outcome.messages)
        .to contain_exactly(/wrote/, "rperf: 1 process ended before its profile could be written\n")
      expect(weight_of(merged, "Object#work")).to be > 0
    end

    it "are there although their parent was killed" do
      outcome = record("Process.wait(fork { work(1) }); Process.kill(:KILL, $$); sleep")
      expect(outcome.status.termsig).to eq(Signal.list["KILL"])
      expect(outcome.messages)
        .to contain_exactly(/wrote/, "rperf: 1 process ended before its profile could be written\n")
      expect(weight_of(merged, "Object#work")).to be > 0
    end
  end

  it "begin and end well while other threads are sampled, hundreds of times" do
    children = Commands.times(1000)
    outcome = record(<<~RUBY, limit: 240)
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      # Threads that block now and then can hang a child of Ruby 3.4, profiled or not: Ruby's pull request 12981.
      busy = 3.times.map { Thread.new { loop { 100.times { "a" * 20 }; Thread.pass } } }
      Thread.new { Queue.new.pop }
      statuses = #{children}.times.map do |number|
        pid = fork { 100.times(&:to_s); number.odd? ? exit!(3) : exit(3) }
        limit = now + 30
        until Process.wait(pid, Process::WNOHANG)
          Process.kill(:KILL, pid) if now > limit
          Thread.pass
        end
        $?.exitstatus || "killed"
      end
      puts statuses.tally.inspect, busy.all?(&:alive?)
      puts(begin; Process.wait; rescue Errno::ECHILD; "none left"; end)
    RUBY
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, "{3 => #{children}}\ntrue\nnone left\n"])
    processes = (children + 1).to_s.sub(/(?<=\A\d)(?=\d{3}\z)/, ",")
    expect(outcome.messages).to contain_exactly(/samples of #{processes} processes/)
    expect(session_directories).to be_empty
  end

  it "end as usual if the command is killed" do
    path = write_file("program.rb", <<~RUBY)
      #{work}
      puts "ready"
      $stdout.flush
      $stdin.read
      Process.wait(fork { work(1); exit!(7) })
      File.write("end", $?.exitstatus)
    RUBY
    reader, writer = IO.pipe
    out, err = %w[out err].map { |name| path_to(name) }
    command = rperf_command("record", "-o", "p.pb.gz", ruby, path)
    pid = Process.spawn(clean_environment, *command, chdir: directory, in: reader, out:, err:)
    wait_until("output") { File.size?(out) }
    Process.kill(:KILL, pid)
    Process.wait(pid)
    writer.close
    wait_until("end of the program") { File.exist?(path_to("end")) && !File.empty?(path_to("end")) }
    expect([File.read(path_to("end")), File.read(err)]).to eq(["7", ""])
    # The next session removes its remains.
    rperf("record", ruby, "-e", "1")
    expect(session_directories).to be_empty
  end

  describe "under rperf stat" do
    it "are summed up and counted" do
      program = "pids = 2.times.map { fork { 300_000.times { Object.new } } }; pids.each { |pid| Process.wait(pid) }"
      page = rperf("stat", ruby, write_file("program.rb", program)).stderr
      expect(page).to match(/^ +3 +\[Ruby\] processes; the figures are their sums$/)
      objects = page[/([\d,]+) +\[Ruby\] allocated objects/, 1].delete(",").to_i
      # Those of the parent are not counted again in its children.
      expect(objects).to be_between(600_000, 900_000)
    end
  end

  describe "of a session that the program started" do
    def run_script(text, env: {})
      text = "require 'rperf'\n#{work}RUBY = #{ruby.inspect}\n#{text}"
      run(ruby, "-I#{Commands::ROOT}/lib", write_file("own.rb", text), env:)
    end

    it "are left out if nothing else is said" do
      outcome = run_script("Rperf.start(output: 'p.pb.gz') { Process.wait(fork { work(1) }); system(RUBY, '-e', '1') }")
      expect(outcome.stderr).to be_empty
      expect(own_label_sets(merged) - [{}]).to be_empty
    end

    it "are profiled if they are forked, with inherit: :fork" do
      outcome = run_script(<<~RUBY)
        data = Rperf.start(mode: :wall, inherit: :fork) do
          Process.wait(fork { work(1); fork { work(2) }; Process.wait })
          system(RUBY, "-e", "print ENV.keys.grep(/RPERF|RUBYOPT/)")
        end
        print data[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size, Rperf.running?
        Rperf.save("p.pb.gz", data)
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["[]3false", ""])
      expect(frames_by_pid.values.count { |frames| frames.include?("Object#work") }).to eq(2)
      expect(session_directories).to be_empty
    end

    it "are all profiled with inherit: true, and the environment is as it was afterwards" do
      outcome = run_script(<<~RUBY, env: { "RUBYOPT" => "-W1" })
        before = ENV.to_h
        data = Rperf.start(mode: :wall, frequency: 200, inherit: true) do
          system(RUBY, "-e", "sleep 0.05")
          `\#{RUBY} -e 1`
        end
        sets = data[:label_sets].map { |set| set.except(:"%gc") }.uniq
        print sets.filter_map { |set| set[:"%process"] }.tally.values, ENV.to_h == before
        system(RUBY, "-e", "print defined?(Rperf).inspect")
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["[1, 2]truenil", ""])
    end

    it "that still run at its end are counted" do
      outcome = run_script("Rperf.start(inherit: :fork) { @pid = fork { sleep } }; Process.kill(:KILL, @pid)")
      expect(outcome.stderr).to eq("rperf: 1 process still ran; its samples are not in the profile\n")
      expect(session_directories).to be_empty
    end

    it "are in the file that was asked for, also if nobody stops it" do
      outcome = run_script(<<~RUBY)
        trap("TERM") { exit 3 }
        Rperf.start(mode: :wall, inherit: :fork, output: "p.pb.gz")
        children = Array.new(2) { fork { work(1) } }
        children.each { |pid| Process.wait(pid) }
        Process.kill(:TERM, Process.pid)
        sleep
      RUBY
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([3, ""])
      expect(frames_by_pid.values.count { |frames| frames.include?("Object#work") }).to eq(2)
      expect(frames_by_pid.size).to eq(3)
      expect(session_directories).to be_empty
    end

    it "leave no directory if it is never stopped" do
      outcome = run_script("Rperf.start(inherit: true); Process.wait(fork { work(1) }); exit 3")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([3, ""])
      expect(session_directories).to be_empty
    end

    it "can stop nothing" do
      outcome = run_script("Rperf.start(inherit: :fork) { Process.wait(fork { p Rperf.stop, Rperf.running? }) }")
      expect(outcome.stdout).to eq("nil\ntrue\n")
    end

    it "are refused with single samples, and by other words" do
      [{ inherit: :spawn }, { inherit: nil }].each do |options|
        expect { Rperf.start(**options) }.to raise_error(ArgumentError, /\Ainherit: must be /)
      end
      expect { Rperf.start(inherit: true, aggregate: false) }
        .to raise_error(ArgumentError, "aggregate: false goes with inherit: false, not with inherit: true")
    end

    it "stay in the session when an exec has failed" do
      outcome = run_script(<<~RUBY)
        fails = -> { begin; exec("no-such-program"); rescue Errno::ENOENT; ENV.keys.grep(/RPERF/); end }
        data = Rperf.start(mode: :wall, inherit: true) do
          Process.wait(fork { work(1) })
          runs_on = fork { sleep 0.2; work(1) }
          print fails[], fails[]
          Process.wait(runs_on)
          system(RUBY, "-e", "1")
        end
        print data[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size, ENV.keys.grep(/RPERF/)
        Rperf.save("p.pb.gz", data)
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(['["RPERF_SESSION"]["RPERF_SESSION"]4[]', ""])
      expect(frames_by_pid.values.count { |frames| frames.include?("Object#work") }).to eq(2)
      expect(session_directories).to be_empty
    end

    it "are nothing to a program after exec" do
      outcome = run_script(<<~'RUBY')
        Rperf.start(inherit: true)
        Process.wait(fork { work(1) })
        exec("/bin/sh", "-c", "echo \"$RPERF_SESSION:$RUBYOPT:$RUBYLIB\"")
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["::\n", ""])
      # Its directory goes with the next session.
      rperf("record", ruby, "-e", "1")
      expect(session_directories).to be_empty
    end

    it "are nothing to a daemon, which leaves no directory" do
      outcome = run_script(<<~RUBY)
        Rperf.start(inherit: true)
        Process.wait(fork { work(1) })
        Process.daemon(true)
        File.write("daemon", [Rperf.running?, ENV.keys.grep(/RPERF/), ENV["RUBYOPT"]].inspect)
        exit!
      RUBY
      wait_until("the daemon's end") { File.size?(path_to("daemon")) }
      expect([outcome.stderr, File.read(path_to("daemon"))]).to eq(["", "[false, [], nil]"])
      expect(session_directories).to be_empty
    end

    it "are merged with RPERF_INHERIT, too" do
      env = { "RPERF_ENABLED" => "1", "RPERF_STAT" => "1", "RPERF_OUTPUT" => "p.pb.gz" }
      program = "system(RbConfig.ruby, '-e', 'sleep 0.02'); Process.wait(fork { sleep 0.02 })"
      counts = { "0" => 0, "fork" => 2, "1" => 3 }.map do |inherit, count|
        env["RPERF_INHERIT"] = inherit
        page = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program, env:).stderr
        expect(page[/(\d+) +\[Ruby\] processes/, 1].to_i).to eq(count)
        merged[:label_sets].to_a.filter_map { |set| set[:"%pid"] }.uniq.size
      end
      expect(counts).to eq([0, 2, 3])
      expect(session_directories).to be_empty
    end

    # With RPERF_INHERIT; how many processes there are in the profile.
    def processes_with_inherit(program, mode = "1")
      env = { "RPERF_ENABLED" => "1", "RPERF_INHERIT" => mode, "RPERF_OUTPUT" => "p.pb.gz", "RPERF_MODE" => "wall" }
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program, env:)
      expect(outcome.stderr).to be_empty
      merged[:label_sets].to_a.filter_map { |set| set[:"%pid"] }.uniq.size
    end

    %w[fork 1].each do |mode|
      it "are merged with RPERF_INHERIT=#{mode} although the program has been refused a session of its own" do
        program = "begin; Rperf.start; rescue Rperf::Error; Process.wait(fork { sleep 0.02 }); end"
        expect(processes_with_inherit(program, mode)).to eq(2)
      end

      it "are merged with RPERF_INHERIT=#{mode} although an exec has failed" do
        program = <<~RUBY
          Process.wait(fork { sleep 0.02 })
          begin
            exec("no-such-program")
          rescue Errno::ENOENT
            Process.wait(fork { sleep 0.02 })
          end
        RUBY
        expect(processes_with_inherit(program, mode)).to eq(3)
        expect(session_directories).to be_empty
      end
    end
  end
end
