# frozen_string_literal: true

# Processes that a profiled program forks or starts, however it does so.
RSpec.describe "the children of a profiled program" do
  WORK = "def work(name) = (i = 0; i += 1 while i < 1_000_000; name)\n"

  # Runs the program in wall mode; its profile goes to p.pb.gz.
  def record(program, *options, env: {}, **, &)
    path = write_file("program.rb", "#{WORK}RUBY = #{ruby.inspect}\nSELF = $PROGRAM_NAME\n#{program}")
    rperf("record", "-m", "wall", "-o", "p.pb.gz", *options, ruby, path, env:, **, &)
  end

  def merged = read_profile(in_folder("p.pb.gz"))

  # %pid => methods and blocks of its samples, of a profile with several processes.
  def frames_by_pid(data = merged)
    data[:samples].each_with_object(Hash.new { |all, pid| all[pid] = [] }) do |(frames, _, _, labels), all|
      all[data[:label_sets][labels][:"%pid"]].concat(frames.map(&:last)).uniq!
    end
  end

  def process_names(data = merged) = data[:label_sets].filter_map { |set| set[:"%process"] }.uniq

  # No folder of a session is left, nor a process that was not waited for.
  def expect_nothing_left
    expect(Dir[File.join(Dir.tmpdir, "rperf-#{Process.uid}", "*")]).to be_empty
  end

  script = ->(code) { "RUBY, '-e', #{"#{WORK}#{code}".inspect}" }
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
      write_file("child.rb", "#{WORK}def child = nil\nwork(child)")
      outcome = record("def child = 1\ndef mine = work(1)\nmine\n#{program.gsub("work(child)", "work(child = 1)")}")
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz \([\d,]+ samples of [23] processes, /)
      busy = frames_by_pid.select { |_, frames| frames.include?("Object#work") }
      expect(busy.size).to eq(2)
      expect(busy.keys).to all(match(/\A\d+\z/))
      expect(busy.count { |_, frames| frames.include?("Object#mine") }).to be >= 1
    end
  end

  it "have one label set for each process, with its number and its name" do
    program = "puts $$\n2.times.map { |n| fork { $0 = \"worker \#{n}\"; puts $$; work(n) } }.each { |pid| Process.wait(pid) }"
    pids = record(program).stdout.lines.map(&:chomp)
    work = merged[:label_sets].reject(&:empty?)
    expect(work.map { |set| set[:"%pid"] }).to match_array(pids)
    expect(process_names).to contain_exactly(in_folder("program.rb"), "worker 0", "worker 1")
  end

  it "are not labelled if there are none" do
    expect(record("work(1)").messages).to contain_exactly(/\([\d,]+ samples, [\d.]+ s\)/)
    expect(merged[:label_sets].to_a.reject(&:empty?)).to be_empty
  end

  it "may have children, and these too" do
    record("fork { fork { system(RUBY, '-e', 'sleep 0.05'); work(1) }; Process.wait; work(1) }; Process.wait; work(1)")
    expect(frames_by_pid.size).to eq(4)
    expect(frames_by_pid.values.count { |frames| frames.include?("Object#work") }).to eq(3)
  end

  it "are all there if there are 200 short ones" do
    outcome = record("200.times.each_slice(5) { |some| some.map { fork { 1 } }.each { |pid| Process.wait(pid) } }")
    expect(outcome.messages).to contain_exactly(/samples of 201 processes/)
    expect_nothing_left
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

  it "are left out with --no-inherit" do
    outcome = record("Process.wait(fork { work(1) }); system(RUBY, '-e', '1')", "--no-inherit")
    expect(outcome.messages).to contain_exactly(/\([\d,]+ samples, /)
  end

  it "can't start a second session, as their parent can't" do
    program = "Process.wait(fork { begin; Rperf.start; rescue Rperf::Error => e; puts e.message; end; p Rperf.stop })"
    expect(record(program).stdout).to eq("this program is already being profiled by rperf record\nnil\n")
  end

  describe "that are lost" do
    it "since they outlive the command are counted" do
      outcome = record("2.times { fork { $stdout.reopen(File::NULL); $stderr.reopen(File::NULL); sleep 1 } }; work(1)")
      expect(outcome.messages).to contain_exactly(
        /wrote p\.pb\.gz \([\d,]+ samples, /, "rperf: 2 processes still ran; their samples are not in the profile\n"
      )
      expect_nothing_left
    end

    it "since they are killed are counted" do
      outcome = record("pid = fork { sleep }; sleep 0.05; Process.kill(:KILL, pid); Process.wait(pid)")
      expect(outcome.messages)
        .to contain_exactly(/wrote/, "rperf: 1 process ended before its profile could be written\n")
    end

    it "with a folder that can't be written to say so" do
      program = "folder = ENV['RPERF_SESSION']; Process.wait(fork { Dir.mkdir(\"\#{folder}/\#{$$}-x\"); work(1) })"
      # No file can take the place of a folder.
      program = "Process.wait(fork { Dir.mkdir(File.join(ENV['RPERF_SESSION'], 'x')); at_exit { File.chmod(0o500, ENV['RPERF_SESSION']) } }); File.chmod(0o700, ENV['RPERF_SESSION'])"
      skip "root can write everywhere" if Process.uid.zero?
      expect(record(program).messages).to contain_exactly(/wrote/, /the profile of process \d+ is lost: can't write to/)
    end

    it "are there although their parent was killed" do
      outcome = record("Process.wait(fork { work(1) }); Process.kill(:KILL, $$); sleep")
      expect(outcome.status.termsig).to eq(Signal.list["KILL"])
      expect(outcome.messages)
        .to contain_exactly(/wrote/, "rperf: 1 process ended before its profile could be written\n")
      expect(weight_of(merged, "Object#work")).to be > 0
    end
  end

  it "end as usual if the command is killed" do
    program = "puts Process.ppid; $stdout.flush; $stdin.read; Process.wait(fork { work(1); exit!(7) }); File.write('end', $?.exitstatus)"
    path = write_file("program.rb", "#{WORK}#{program}")
    reader, writer = IO.pipe
    pid = Process.spawn(*rperf_command("record", "-o", "p.pb.gz", ruby, path), chdir: folder, in: reader,
                                                                              out: in_folder("out"), err: in_folder("err"))
    wait_until("output") { File.size?(in_folder("out")) }
    Process.kill(:KILL, pid)
    Process.wait(pid)
    writer.close
    wait_until("end of the program") { File.exist?(in_folder("end")) && !File.empty?(in_folder("end")) }
    expect([File.read(in_folder("end")), File.read(in_folder("err"))]).to eq(["7", ""])
    # The next session removes what is left of it.
    rperf("record", ruby, "-e", "1")
    expect_nothing_left
  end

  describe "under rperf stat" do
    it "are summed up and counted" do
      program = "#{WORK}GC.disable\n2.times.map { fork { 300_000.times { Object.new } } }.each { |pid| Process.wait(pid) }"
      page = rperf("stat", ruby, write_file("program.rb", program)).stderr
      expect(page).to match(/^ +3 +\[Ruby\] processes; the figures are their sums$/)
      objects = page[/([\d,]+) +\[Ruby\] allocated objects/, 1].delete(",").to_i
      # Those of the parent are not counted again in its children.
      expect(objects).to be_between(600_000, 900_000)
    end
  end

  describe "of a session that the program started" do
    def run_script(text, env: {})
      run(ruby, "-I#{Commands::ROOT}/lib", write_file("own.rb", "require 'rperf'\n#{WORK}RUBY = #{ruby.inspect}\n#{text}"), env:)
    end

    it "are left out if nothing else is said" do
      outcome = run_script("Rperf.start(output: 'p.pb.gz') { Process.wait(fork { work(1) }); system(RUBY, '-e', '1') }")
      expect(outcome.stderr).to be_empty
      expect(merged[:label_sets].to_a.reject(&:empty?)).to be_empty
    end

    it "are profiled if they are forked, with inherit: :fork" do
      outcome = run_script(<<~RUBY)
        data = Rperf.start(mode: :wall, inherit: :fork) do
          Process.wait(fork { work(1); fork { work(2) }; Process.wait })
          system(RUBY, "-e", "print ENV.keys.grep(/RPERF|RUBYOPT/)")
        end
        print data[:label_sets].filter_map { |set| set[:"%pid"] }.size, Rperf.running?
        Rperf.save("p.pb.gz", data)
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["[]3false", ""])
      expect(frames_by_pid.values.count { |frames| frames.include?("Object#work") }).to eq(2)
      expect_nothing_left
    end

    it "are all profiled with inherit: true, and the environment is as it was afterwards" do
      outcome = run_script(<<~RUBY, env: { "RUBYOPT" => "-W1" })
        before = ENV.to_h
        data = Rperf.start(mode: :wall, frequency: 200, inherit: true) { system(RUBY, "-e", "sleep 0.05"); `\#{RUBY} -e 1` }
        print data[:label_sets].filter_map { |set| set[:"%process"] }.tally.to_a, ENV.to_h == before
        system(RUBY, "-e", "print defined?(Rperf).inspect")
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["[[\"own.rb\", 1], [\"-e\", 2]]truenil".sub("own.rb", in_folder("own.rb")), ""])
    end

    it "that still run at its end are counted" do
      outcome = run_script("Rperf.start(inherit: :fork) { $pid = fork { sleep } }\nProcess.kill(:KILL, $pid); Process.wait")
      expect(outcome.stderr).to eq("rperf: 1 process still ran; its samples are not in the profile\n")
      expect_nothing_left
    end

    it "leave no folder if it is never stopped" do
      outcome = run_script("Rperf.start(inherit: true); Process.wait(fork { work(1) }); exit 3")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([3, ""])
      expect_nothing_left
    end

    it "can stop nothing" do
      outcome = run_script("Rperf.start(inherit: :fork) { Process.wait(fork { p Rperf.stop, Rperf.running? }) }")
      expect(outcome.stdout).to eq("nil\ntrue\n")
    end

    it "are refused with single samples, and by other words" do
      [{ inherit: :spawn }, { inherit: nil }, { inherit: true, aggregate: false }].each do |options|
        expect { Rperf.start(**options) }.to raise_error(ArgumentError, /\Ainherit: must be /)
      end
    end

    it "are merged with RPERF_INHERIT, too" do
      env = { "RPERF_ENABLED" => "1", "RPERF_STAT" => "1", "RPERF_OUTPUT" => "p.pb.gz" }
      program = "system(RbConfig.ruby, '-e', 'sleep 0.02'); Process.wait(fork { sleep 0.02 })"
      counts = { "0" => 0, "fork" => 2, "1" => 3 }.map do |inherit, count|
        page = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program, env: { **env, "RPERF_INHERIT" => inherit }).stderr
        expect(page[/(\d+) +\[Ruby\] processes/, 1].to_i).to eq(count)
        merged[:label_sets].to_a.filter_map { |set| set[:"%pid"] }.size
      end
      expect(counts).to eq([0, 2, 3])
      expect_nothing_left
    end
  end
end
