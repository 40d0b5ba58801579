# frozen_string_literal: true

RSpec.describe "the directory of a session" do
  def users_directory(base = temporary_directory) = File.join(base, "rperf-#{Process.uid}")

  def record(program = "1", **) = rperf("record", ruby, "-e", program, **)

  def shown_session(**) = record("puts ENV['RPERF_SESSION']", **).stdout.chomp

  it "is private, within a private directory, and gone at the end" do
    program = "path = ENV['RPERF_SESSION']; puts [path, File.dirname(path)].map { |name| File.stat(name).mode.to_s(8) }"
    expect(record(program).stdout).to eq("40700\n40700\n")
    expect(session_directories).to be_empty
  end

  it "is private with any umask" do
    path = write_file("program.rb", "system('ls -ld $RPERF_SESSION')")
    command = "umask 0; exec '#{ruby}' '#{Commands::ROOT}/exe/rperf' record '#{ruby}' '#{path}'"
    expect(run("/bin/sh", "-c", command).stdout).to start_with("drwx------")
  end

  it "is in XDG_RUNTIME_DIR if that can be used, else in the temporary directory" do
    Dir.mkdir(path_to("runtime"))
    expect(shown_session(env: { "XDG_RUNTIME_DIR" => path_to("runtime") }))
      .to start_with("#{users_directory(path_to("runtime"))}/")
    expect(Dir.children(path_to("runtime"))).to be_empty
    ["runtime", path_to("nowhere"), ""].each do |value|
      expect(shown_session(env: { "XDG_RUNTIME_DIR" => value })).to start_with("#{users_directory}/")
    end
  end

  it "is in no place that isn't absolute: the program may change its directory" do
    Dir.mkdir(path_to("relative"))
    ["relative", ""].each do |value|
      outcome = record("puts ENV['RPERF_SESSION']; Dir.chdir('/')", env: { "TMPDIR" => value })
      expect(outcome.stdout).to start_with("/tmp/rperf-#{Process.uid}/")
      expect(outcome.messages).to contain_exactly(/wrote rperf\.data/)
    end
  end

  {
    "is open to others" => ->(path) { Dir.mkdir(path, 0o755) },
    "is a link" => ->(path) { File.symlink(Dir.mkdir("#{path}-other", 0o700) && "#{path}-other", path) },
    "is a file" => ->(path) { File.write(path, "") }
  }.each do |what, make|
    it "is refused in one line if what is there #{what}, and nothing runs" do
      make[users_directory]
      outcome = record("puts 'ran'")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([1, ""])
      expect(outcome.stderr).to match(/\Arperf: \S+ must be a directory of yours with mode 700; remove it, .*\n\z/)
    end
  end

  it "is refused in one line if there is no place for it" do
    outcome = record(env: { "TMPDIR" => path_to("nowhere") })
    expect([outcome.status.exitstatus, outcome.stderr])
      .to match([1, /\Arperf: there is no directory .*nowhere: make it, or set TMPDIR to another one\n\z/])
  end

  it "is refused by Rperf.start if there is no place for it, and nothing is profiled" do
    code = "begin; Rperf.start(inherit: :fork); rescue Rperf::Error; puts $!.message; end; p Rperf.running?, Rperf.stop"
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env: { "TMPDIR" => path_to("nowhere") })
    expect(outcome.stdout)
      .to match(/\Athere is no directory .*nowhere: make it, or set TMPDIR to another one\nfalse\nnil\n\z/)
  end

  it "is removed later if its process was killed, but not that of one which runs" do
    stale = File.join(users_directory, "#{2**22}-5-0")
    command = "system(*#{rperf_command("record", ruby, "-e", "1").inspect}); puts Dir.exist?(ENV['RPERF_SESSION'])"
    FileUtils.mkdir_p(stale, mode: 0o700)
    expect(record(command).stdout).to eq("true\n")
    expect(session_directories).to be_empty
  end

  it "stays while its lock is held, as by a process in another container" do
    elsewhere = File.join(users_directory, "#{2**22}-5-0")
    FileUtils.mkdir_p(elsewhere, mode: 0o700)
    File.chmod(0o700, users_directory)
    File.open(File.join(elsewhere, "lock"), "w") do |lock|
      lock.flock(File::LOCK_EX)
      record
      expect(Dir).to exist(elsewhere)
    end
    record
    expect(session_directories).to be_empty
  end

  describe "as a Ruby finds it" do
    def with_session(path, program = "puts 'ran'")
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program, env: { "RPERF_SESSION" => path })
    end

    it "may be gone, and nothing is said" do
      program = "puts Rperf.running?, Rperf.start(mode: :wall) { sleep 0.01 }.is_a?(Hash), ENV.key?('RPERF_SESSION')"
      outcome = with_session(path_to("gone"), program)
      expect([outcome.stdout, outcome.stderr]).to eq(["false\ntrue\ntrue\n", ""])
    end

    it "must be private" do
      Dir.mkdir(path_to("open"), 0o755)
      File.symlink(Dir.mkdir(path_to("closed"), 0o700) && path_to("closed"), path_to("link"))
      %w[open link].each do |name|
        outcome = with_session(path_to(name))
        expect(outcome.stdout).to eq("ran\n")
        expect(outcome.stderr)
          .to match(/\Arperf: the directory .* is not private to this user; running without profiling\n\z/)
      end
    end
  end
end
