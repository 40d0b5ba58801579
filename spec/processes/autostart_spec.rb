# frozen_string_literal: true

RSpec.describe "profiling started by RPERF_ENABLED" do
  def profiled(env, program = "sleep 0.02")
    run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program, env: { "RPERF_ENABLED" => "1" }.merge(env))
  end

  it "writes rperf.data in silence" do
    expect(profiled({}).stderr).to be_empty
    expect(read_profile(path_to("rperf.data"))).to include(mode: :cpu)
  end

  it "says once that RPERF_ENABLED is neither on nor off" do
    program = "system(RbConfig.ruby, '-I#{Commands::ROOT}/lib', '-rrperf', '-e', 'print 1'); print 2"
    told = profiled({ "RPERF_ENABLED" => "yes" }, program)
    expect(told.stderr).to eq(%(rperf: RPERF_ENABLED must be 1 or 0, not "yes"; running without profiling\n))
    expect(told.stdout).to eq("12")
    expect(["0", ""].map { |value| profiled({ "RPERF_ENABLED" => value }).stderr }).to eq(["", ""])
    expect(Dir.glob("*", base: directory)).to be_empty
  end

  it "goes by the variables" do
    variables = { "RPERF_MODE" => "wall", "RPERF_FREQUENCY" => "50", "RPERF_SIGNAL" => "false" }
    profiled({ "RPERF_OUTPUT" => "p.pb.gz", **variables })
    expect(read_profile(path_to("p.pb.gz"))).to include(mode: :wall, frequency: 50)
    page = profiled({ "RPERF_STAT" => "1", "RPERF_STAT_COMMAND" => "mine" }).stderr
    expect(page).to include("stats for 'mine'", "GVL blocked")
  end

  it "prints statistics, a report or neither as the variables say" do
    program = "def work = (i = 0; i += 1 while i < 10_000_000)\nwork"
    page = profiled({ "RPERF_STAT" => "1", "RPERF_STAT_REPORT" => "1", "RPERF_VERBOSE" => "0" }, program).stderr
    expect(page).to match(/^ Performance stats for '-e':$.*^ *Cumulative:.*Object#work/mi)
    page = profiled({ "RPERF_STAT" => "1", "RPERF_STAT_REPORT" => "0" }, program).stderr
    expect(page).not_to match(/Object#work/)
    lines = profiled({ "RPERF_VERBOSE" => "1", "RPERF_STAT" => "0" }, program).stderr
    expect(lines).to match(/samples/).and match(/Object#work/)
    expect(lines).not_to include("Performance stats")
  end

  it "writes the format that RPERF_FORMAT says" do
    profiled({ "RPERF_FORMAT" => "collapsed", "RPERF_MODE" => "wall", "RPERF_OUTPUT" => "p.txt" })
    expect(File.readlines(path_to("p.txt"))).to include(/\A[^;]+;.*Kernel#sleep.* \d+\n\z/)
  end

  it "keeps samples one by one with RPERF_AGGREGATE=0, and with RPERF_AGGREGATE=1 doesn't", vm: true do
    program = "20.times { sleep 0.01 }; begin; Rperf.snapshot; rescue Rperf::Error => e; print e.message; end"
    messages = %w[0 1].map do |aggregate|
      profiled({ "RPERF_AGGREGATE" => aggregate, "RPERF_MODE" => "wall", "RPERF_OUTPUT" => "p.pb.gz" }, program).stdout
    end
    expect(messages).to match([/aggregate: false/, ""])
    expect(weight_of(read_profile(path_to("p.pb.gz")), "sleep")).to be > 150_000_000
  end

  # An emulator has numbers of its own for real-time signals.
  it "uses the signal that RPERF_SIGNAL says", if: Gem::Platform.local.os == "linux", emulated: false do
    program = "print File.read('/proc/self/timers')[%r{^signal: (\\d+)/}, 1]"
    expect(profiled({ "RPERF_SIGNAL" => "40" }, program).stdout).to eq("40")
  end

  it "takes stacks as RPERF_CAPTURE says", vm: true, if: Gem::Platform.local.os == "linux" do
    handled = [{ "RPERF_CAPTURE" => "tick" }, { "RPERF_CAPTURE" => "safepoint" }, {}, { "RPERF_CAPTURE" => "" },
               { "RPERF_SIGNAL" => "false" }].map do |env|
      program = "print File.read('/proc/self/status')[/^SigCgt:\\s*(\\h+)/, 1].hex[Signal.list['URG'] - 1]"
      profiled(env, program).stdout
    end
    expect(handled).to eq(%w[1 0 1 1 0])
  end

  it "takes stacks so in children too", vm: true, if: Gem::Platform.local.os == "linux" do
    handled = "File.read('/proc/self/status')[/^SigCgt:\\s*(\\h+)/, 1].hex[Signal.list['URG'] - 1]"
    said = %w[tick safepoint].map do |capture|
      program = "$stdout.sync = true
                 Process.wait(fork { print #{handled} })
                 system(#{ruby.dump}, '-e', #{"print #{handled}".dump})"
      profiled({ "RPERF_CAPTURE" => capture, "RPERF_INHERIT" => "1" }, program).stdout
    end
    expect(said).to eq(%w[11 00])
  end

  it "records and shows lines as RPERF_LINES says" do
    program = "def work = (i = 0; i += 1 while i < 10_000_000)\nwork"
    reports = { "1" => "p1.txt", "0" => "p0.txt", "" => "p.txt" }.map do |value, output|
      profiled({ "RPERF_LINES" => value, "RPERF_OUTPUT" => output }, program)
      File.read(path_to(output))
    end
    expect(reports).to match([/^Lines:\n.* -e:1 \(Object#work\)$/m, /\A((?!Lines:).)*\z/m, /\A((?!Lines:).)*\z/m])
  end

  {
    { "RPERF_FREQUENCY" => "0" } =>
      /RPERF_FREQUENCY must be a whole number from 1 to 10000 \(samples per second\), not '0'/,
    { "RPERF_FREQUENCY" => "many" } => /RPERF_FREQUENCY must be a whole number from 1 to 10000 .*, not 'many'/,
    { "RPERF_MODE" => "gpu" } => "RPERF_MODE must be cpu, wall, trace or account, not 'gpu'",
    { "RPERF_LINES" => "yes" } => "RPERF_LINES must be 1 or 0, not 'yes'",
    { "RPERF_CAPTURE" => "1" } => "RPERF_CAPTURE must be tick or safepoint, not '1'",
    { "RPERF_VERBOSE" => "true" } => "RPERF_VERBOSE must be 1 or 0, not 'true'",
    { "RPERF_STAT" => "yes" } => "RPERF_STAT must be 1 or 0, not 'yes'",
    { "RPERF_STAT_REPORT" => "true" } => "RPERF_STAT_REPORT must be 1 or 0, not 'true'",
    { "RPERF_AGGREGATE" => "false" } => "RPERF_AGGREGATE must be 1 or 0, not 'false'",
    { "RPERF_INHERIT" => "true" } => "RPERF_INHERIT must be 0, fork or 1, not 'true'",
    { "RPERF_INHERIT" => "fork", "RPERF_AGGREGATE" => "0" } =>
      "RPERF_AGGREGATE=0 goes with RPERF_INHERIT=0, not with RPERF_INHERIT=fork",
    { "RPERF_CAPTURE" => "tick", "RPERF_SIGNAL" => "false" } =>
      "RPERF_SIGNAL=false goes with RPERF_CAPTURE=safepoint, not with RPERF_CAPTURE=tick",
    { "RPERF_SIGNAL" => "PROF" } =>
      /RPERF_SIGNAL must be false \(no signal\) or a number from \d+ to \d+ \(a real-time signal\), not 'PROF'/,
    { "RPERF_SIGNAL" => "14" } => /RPERF_SIGNAL must be .* from \d+ to \d+ .*, not '14'/,
    { "RPERF_FORMAT" => "svg" } =>
      "RPERF_FORMAT must be pprof, collapsed, text, markdown, json, html, dot, callgrind or spans, not 'svg'",
    { "RPERF_OUTPUT" => "/no/such/p" } => "RPERF_OUTPUT must be in a directory that exists, not '/no/such/p'",
    { "RPERF_OUTPUT" => "" } => "RPERF_OUTPUT must be the path of a file, not ''",
    { "RPERF_OUTPUT" => "x.md" } => "RPERF_OUTPUT=/.*/x.md: a profile is no .md: write x.pb.gz, which 'rperf report' " \
                                    "converts, or give RPERF_FORMAT=markdown",
    { "RPERF_OUTPUT" => "x.png" } => "RPERF_OUTPUT=/.*/x.png: a profile is no .png: write x.pb.gz",
    { "RPERF_OUTPUT" => "x.spans.json" } =>
      "RPERF_OUTPUT=/.*/x.spans.json is a time line: RPERF_MODE=trace and RPERF_SPANS=1ms keep one"
  }.each do |env, message|
    it "lets the program run with #{env}, and says why there is no profile" do
      outcome = profiled(env, "puts 'ran'; exit 3")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([3, "ran\n"])
      expect(outcome.stderr).to match(/\Arperf: #{message}.*; running without profiling\n\z/)
    end
  end

  describe "in a directory that was deleted" do
    def in_deleted_directory(env)
      Dir.mkdir(path_to("gone"))
      command = "cd gone && rmdir ../gone && exec '#{ruby}' -I'#{Commands::ROOT}/lib' -rrperf -e 'puts 1; exit 3'"
      run("/bin/sh", "-c", command, env: { "RPERF_ENABLED" => "1" }.merge(env))
    end

    it "works with an output elsewhere, and for the page" do
      outcome = in_deleted_directory({ "RPERF_OUTPUT" => path_to("p.pb.gz") })
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["1\n", "", 3])
      expect(read_profile(path_to("p.pb.gz"))).to include(mode: :cpu)
      expect(in_deleted_directory({ "RPERF_STAT" => "1" }).stderr).to include("CPU execution")
    end

    it "lets the program run where the output would be there, and says so" do
      outcome = in_deleted_directory({})
      expect([outcome.stdout, outcome.status.exitstatus]).to eq(["1\n", 3])
      expect(outcome.stderr)
        .to match(/\Arperf: RPERF_OUTPUT must be an absolute path, .*; running without profiling\n\z/)
    end
  end

  describe "without the extension" do
    def profiled_without_extension(*arguments)
      FileUtils.cp_r(%w[lib exe].map { |name| File.join(Commands::ROOT, name) }, directory)
      FileUtils.rm(Dir[path_to("lib/rperf/rperf.*")])
      run(ruby, "-I#{path_to("lib")}", "-rrperf", *arguments, env: { "RPERF_ENABLED" => "1" })
    end

    it "lets the program run" do
      outcome = profiled_without_extension("-e", "puts 'ran'")
      expect(outcome.stdout).to eq("ran\n")
      expect(outcome.stderr).to match(/\Arperf: its extension can't be loaded .*; running without profiling\n\z/)
    end

    it "lets it use the API, which does nothing, or raises if it should give a profile" do
      outcome = profiled_without_extension("-e", <<~RUBY)
        p Rperf.label(a: 1) { 2 }, Rperf.label(a: 1), Rperf.labels, Rperf.profile(a: 1) { 3 }
        p Rperf.running?, Rperf.stop, Rperf.snapshot(clear: true)
        [-> { Rperf.start(mode: :wall) { 1 } }, -> { Rperf.save("p.pb.gz", {}, format: :text) }].each do |call|
          call.call
        rescue Rperf::Error => e
          puts e.message
        end
        p((Rperf.profile rescue $!.class))
      RUBY
      expect(outcome.stdout.lines(chomp: true)).to match(
        ["2", "{}", "{}", "3", "false", "nil", "nil", /\Anothing can be profiled here: its extension/,
         /\Ano profile can be written here: its extension/, "ArgumentError"]
      )
    end

    # Every method that the API has.
    it "has no method that the program would miss" do
      code = "print Rperf.singleton_class.public_instance_methods(false).sort.inspect"
      inert = profiled_without_extension("-e", code).stdout
      expect(inert).to eq(run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code).stdout)
      expect(inert).to include(":start, :stop")
    end

    it "hands requests and jobs on" do
      outcome = profiled_without_extension("-e", <<~RUBY)
        require "rperf/rack"
        p Rperf::RackMiddleware.new(->(env) { env.values }).call({ "PATH_INFO" => "/" })
        require "rperf/sidekiq"
        p Rperf::SidekiqMiddleware.new.call(nil, {}, nil) { 1 }
      RUBY
      expect(outcome.stdout).to eq("[\"/\"]\n1\n")
    end

    it "has a viewer without snapshots, and checks the middlewares' arguments" do
      outcome = profiled_without_extension("-e", <<~RUBY)
        require "rperf/viewer"
        require "rperf/rack"
        viewer = Rperf::Viewer.new(auth: ->(_) { true })
        p viewer.take_snapshot!
        env = { "REQUEST_METHOD" => "POST", "PATH_INFO" => "/snapshots", "HTTP_X_RPERF" => "1" }
        puts viewer.call(env).last.join
        puts viewer.call(env.merge("REQUEST_METHOD" => "GET", "PATH_INFO" => "/snapshots.json")).last.join
        [-> { Rperf::Viewer.new(path: 1) }, -> { Rperf::RackMiddleware.new(nil, label_key: 1) }].each do |call|
          call.call
        rescue ArgumentError => e
          puts e.message
        end
      RUBY
      off = /Profiling is off in this process/
      expect([outcome.stdout.lines(chomp: true), outcome.stderr.lines.size])
        .to match([["nil", off, off, /\Apath: must be a path/, /\Alabel_key: must be a Symbol/], 1])
    end

    it "lets an rperf command run, and the program of that" do
      outcome = profiled_without_extension(path_to("exe/rperf"), "record", ruby, "-e", "puts 'ran'")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([1, "ran\n"])
      line = /\Arperf: its extension can't be loaded .*; running without profiling\n\z/
      expect(outcome.stderr.lines).to match([line, line])
    end
  end

  # As docs/guide/environment-variables.md has it: -rrperf is in RUBYOPT, so a program after exec loads it too.
  describe "by RUBYOPT", vm: true do
    def with_rubyopt(program, env = {})
      env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => "p.pb.gz", "RUBYOPT" => "-rrperf",
              "RUBYLIB" => "#{Commands::ROOT}/lib", **env }
      path = write_file("program.rb", "def work(_) = (i = 0; i += 1 while i < 10_000_000)\n#{program}")
      run(ruby, path, env:)
    end

    def weight(method) = weight_of(read_profile(path_to("p.pb.gz")), method)

    it "profiles the program, which sees no variables" do
      expect(with_rubyopt("work(1); print ENV.keys.grep(/RPERF/)").stdout).to eq("[]")
      expect(weight("Object#work")).to be > 0
    end

    it "goes on after exec, in the same file" do
      program = <<~RUBY
        def after = work(1)
        ARGV.empty? ? (Dir.chdir("/"); exec(#{ruby.inspect}, $PROGRAM_NAME, "2")) : after
        print ENV.keys.grep(/RPERF/)
      RUBY
      outcome = with_rubyopt(program)
      expect([outcome.stdout, outcome.stderr]).to eq(["[]", ""])
      expect(weight("Object#after")).to be > 0
    end

    it "writes the profile until then if the program after exec is no Ruby" do
      outcome = with_rubyopt("work(1)\nexec('echo $RPERF_ENABLED')")
      expect([outcome.stdout, outcome.stderr]).to eq(["1\n", ""])
      expect(weight("Object#work")).to be > 0
    end

    it "goes on when an exec has failed, and the program sees no variables" do
      program = "def after = work(1)\nbegin; exec('no-such-program'); rescue SystemCallError; after; end\n"
      expect(with_rubyopt("#{program}print ENV.keys.grep(/RPERF/)").stdout).to eq("[]")
      expect(weight("Object#after")).to be > 0
    end

    [
      "exec('no-such-program')", "exec('no-such-program -x')", "exec(['no-such-program', 'n'], '-x')",
      "exec('/no/such/program', '-x')", "exec('exit 0')", "exec('sh -c true')", "exec(':; true')"
    ].each do |call|
      it "prints the page once with #{call}" do
        outcome = with_rubyopt("begin; #{call}; rescue SystemCallError; end", { "RPERF_STAT" => "1" })
        expect(outcome.stderr.scan("Performance stats").size).to eq(1)
      end
    end

    it "goes on in a daemon" do
      outcome = with_rubyopt(<<~RUBY)
        def after = #{20 / Commands::SLOWNESS}.times { work(1) }
        Process.daemon
        File.write(#{path_to("pid").inspect}, $$)
        after
        at_exit { File.write(#{path_to("ended").inspect}, ENV.keys.grep(/RPERF/).size) }
      RUBY
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      wait_until("end of the daemon") { File.size?(path_to("ended")) }
      present = -> { [threads_of(File.read(path_to("pid"))), Dir.children(directory)].inspect }
      wait_until("the daemon's profile", detail: present) { weight("Object#after").positive? }
      expect(File.read(path_to("ended"))).to eq("0")
    end

    it "goes on in a daemon, and in the children that it forks" do
      outcome = with_rubyopt(<<~RUBY, { "RPERF_INHERIT" => "fork" })
        def after = #{20 / Commands::SLOWNESS}.times { work(1) }
        Process.daemon(true, true)
        Process.wait(fork { after })
        at_exit { File.write(#{path_to("ended").inspect}, "yes") }
      RUBY
      wait_until("end of the daemon") { File.size?(path_to("ended")) }
      wait_until("the daemon's profile") { weight("Object#after").positive? }
      wait_until("the end of its session") { session_directories.empty? }
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    end
  end

  it "leaves an rperf command alone, and what that runs" do
    env = { "RPERF_ENABLED" => "1", "RPERF_INHERIT" => "1", "RPERF_OUTPUT" => "outer.pb.gz" }
    program = "p ENV.to_h.slice('RUBYOPT', 'RUBYLIB', 'RPERF_SESSION'); Process.kill(:KILL, $$)"
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "#{Commands::ROOT}/exe/rperf",
                  "record", "--no-inherit", ruby, "-e", program, env:)
    expect([outcome.stdout, outcome.status.termsig]).to eq(["{}\n", Signal.list["KILL"]])
    expect(session_directories).to be_empty
    expect(File).not_to exist(path_to("outer.pb.gz"))
  end

  it "leaves an rperf command no port" do
    env = { "RPERF_LISTEN" => "1", "RPERF_ENABLED" => "1" }
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "#{Commands::ROOT}/exe/rperf", "ps", "--json", env:)
    expect([outcome.stdout, outcome.stderr]).to match([/"programs": ?\[/, ""])
    expect(Dir[File.join(temporary_directory, "rperf-*", "*.sock")]).to eq([])
    expect(outcome.stdout).not_to include(directory)
  end

  it "tells a program that wants its own session, and keeps the outer one" do
    program = "begin; Rperf.start; rescue Rperf::Error => e; puts e.message; end; p Rperf.stop"
    expect(profiled({}, program).stdout).to match(/already being profiled by RPERF_ENABLED=1\nnil\n\z/)
    expect(read_profile(path_to("rperf.data"))).to include(mode: :cpu)
  end
end
