# frozen_string_literal: true

# Outputs that can't be written, or never to an end: the program ends as it would without rperf, and its profile is not
# waited for for ever.
RSpec.describe "A profile whose output", vm: true do
  work = "1000.times { |number| number.to_s } while Process.clock_gettime(2) < #{0.3 * Commands::SLOWNESS}"

  def pipe
    path_to("pipe").tap { |path| File.mkfifo(path) }
  end

  # Of the command, or of a program that is profiled without it.
  def elsewhere(outcome)
    line = outcome.stderr.lines.find { |text| text.include?("it is in") }
    line.to_s[/it is in (\S+\.pb\.gz)/, 1].tap { |path| temporary(path) }
  end

  def temporary(path) = (@temporary ||= []) << path

  after { FileUtils.rm_f(Array(@temporary).compact) }

  it "is a pipe that nobody reads is in another file" do
    path = pipe
    outcome = rperf("record", "-o", path, "--", ruby, "-e", "#{work}; puts 'done'", limit: 60)
    expect(outcome.stdout).to eq("done\n")
    expect(outcome.stderr).to include("can't write the profile to #{path} (it has no reader)")
    expect(weight_of(read_profile(elsewhere(outcome)), "Integer#to_s")).to be > 0
  end

  it "is a pipe that nobody reads ends the program as ever, if that writes it itself" do
    environment = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => pipe, "TMPDIR" => directory }
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "#{work}; exit 3", env: environment, limit: 60)
    expect(outcome.status.exitstatus).to eq(3)
    expect(outcome.stderr).to include("(it has no reader)")
    kept = elsewhere(outcome)
    expect(File.stat(kept).mode & 0o777).to eq(0o600)
    expect(kept).to start_with(directory)
  end

  it "is a pipe can be refused by Rperf.save, and read by whoever is there" do
    path = pipe
    code = <<~RUBY
      require "rperf"
      profile = Rperf.start { #{work} }
      begin
        Rperf.save(#{path.inspect}, profile)
      rescue Errno::ENXIO => error
        puts error.message
      end
      reader = Thread.new { File.binread(#{path.inspect}) }
      Thread.pass until reader.stop?
      Rperf.save(#{path.inspect}, profile)
      puts reader.value.getbyte(0)
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-e", code, limit: 60)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    expect(outcome.stdout.lines.map(&:chomp)).to match([/No such device or address/, "31"])
  end

  # Starts a process that reads the pipe, which holds no more than a page, by this code. It is there when this returns,
  # and is ended after the example.
  def reader_of(path, code)
    program = <<~RUBY
      File.open(#{path.inspect}, "r+") do |pipe|
        pipe.fcntl(1031, 4096) # F_SETPIPE_SZ
        $stdout.syswrite(".")
        #{code}
      end
    RUBY
    said, out = IO.pipe
    readers << Process.spawn(ruby, "-retc", "-e", program, out:)
    out.close
    said.readpartial(1)
    said.close
  end

  # A part of a page a second.
  def slowly = "loop { pipe.readpartial(Etc.sysconf(Etc::SC_PAGESIZE) / 4) && sleep(1) }"

  def readers = @readers ||= []

  after do
    readers.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  # The class of what Rperf.save raises, where a signal comes after half a second, and how many seconds it takes. `path`
  # is the code of the output's.
  def given_up(path)
    code = <<~RUBY
      require "rperf"
      Rperf.start(mode: :wall)
      #{many_methods}
      profile = Rperf.stop
      path = #{path}
      Thread.new { sleep 0.5; Process.kill(:TERM, $$) }
      began = Process.clock_gettime(1)
      begin
        Rperf.save(path, profile, format: :collapsed)
      rescue SignalException, SystemCallError => error
        puts error.class, Process.clock_gettime(1) - began
      end
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", write_file("program.rb", code), limit: 60)
    expect(outcome.stderr).to eq("")
    error, seconds = outcome.stdout.split
    [error, seconds.to_f]
  end

  it "is read slowly is given up soon after a signal that is to end the program" do
    path = pipe
    reader_of(path, slowly)
    # The reader would have 30 s.
    expect(given_up(path.inspect)).to match(["SignalException", be < 25])
  end

  it "is a pipe's descriptor that nobody reads is given up soon after a signal" do
    # 1031 is F_SETPIPE_SZ.
    path = '($pipe = IO.pipe).last.then { |writer| writer.fcntl(1031, 4096) && "/dev/fd/%d" % writer.fileno }'
    expect(given_up(path)).to match(["SignalException", be < 25])
  end

  it "is read slowly is in another file soon after a signal to the command" do
    path = pipe
    reader_of(path, slowly)
    program = write_file("program.rb", "#{many_methods}; $stdout.sync = true; puts 'done'")
    began = nil
    record = ["record", "-o", path, "--format", "collapsed", "--", ruby, program]
    outcome = rperf(*record, limit: 60) do |pid|
      sleep 1
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Process.kill(:TERM, pid)
    end
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be < 25
    expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /reads too slowly/])
    expect(read_profile(elsewhere(outcome))[:samples].size).to be > 50
  end

  it "loses its reader in the middle is in another file, and no signal ends the program" do
    path = pipe
    environment = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => path, "RPERF_FORMAT" => "collapsed",
                    "TMPDIR" => directory }
    reader_of(path, "pipe.readpartial(10)")
    program = write_file("program.rb", "trap(:PIPE, 'SYSTEM_DEFAULT'); #{many_methods}; exit 3")
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program, env: environment, limit: 60)
    expect([outcome.status.exitstatus, outcome.status.termsig]).to eq([3, nil])
    expect(read_profile(elsewhere(outcome))[:samples].size).to be > 50
  end

  it "can't be told of, as nobody reads what is said, is no reason for a signal to end the program" do
    program = "trap(:PIPE, 'SYSTEM_DEFAULT'); Process.setrlimit(:FSIZE, 10); exit 3"
    command = rperf_command("record", "-o", path_to("p.pb.gz"), "--", ruby, "-e", program)
    outcome = run("bash", "-c", 'exec "$@" 2> >(exec true)', "bash", *command)
    expect([outcome.status.exitstatus, outcome.status.termsig]).to eq([3, nil])
  end

  it "is larger than files may be is given up, and the program ends as without rperf" do
    limited = "Process.setrlimit(:FSIZE, 512); #{work}; Thread.new { sleep }; puts 'done'; exit 3"
    outcome = rperf("record", "-o", path_to("p.pb.gz"), "--", ruby, "-e", limited, limit: 60)
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([3, "done\n"])
    expect(outcome.stderr).to match(/rperf: .*File too large/)
  end

  # QEMU itself ends where files may not be large.
  it "is larger than any file may be is told of by a command that no signal ends", emulated: false do
    inside = "ulimit -f 1; exec \"$@\""
    command = rperf_command("record", "-o", path_to("p.pb.gz"), "--", ruby, write_file("program.rb", many_methods))
    outcome = run("sh", "-c", inside, "sh", *command, limit: 60)
    expect(outcome.status.exitstatus).to eq(1)
    expect(outcome.stderr).to match(/\Arperf: the profile of process \d+ is lost: .* \(File too large\)\n\z/)
  end

  # A log may be as large as files may be, while the program writes nothing there.
  it "isn't told of in a file that is as large as files may be, and no signal ends anything", emulated: false do
    inside = 'ulimit -f 2; exec "$@" 2>>log'
    own = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => "/dev/full" }
    alone = [ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "puts 'ran'; exit 3"]
    [[rperf_command("stat", "--", ruby, "-e", "puts 'ran'; exit 3"), {}], [alone, own]].each do |command, env|
      write_file("log", "x" * 2048)
      outcome = run("sh", "-c", inside, "sh", *command, env:)
      expect([outcome.stdout, outcome.status.exitstatus]).to eq(["ran\n", 3])
      expect(File.read(path_to("log"))).to eq("x" * 2048)
    end
  end

  # What rperf itself says in a program, by methods of Ruby.
  {
    "a refusal" => ["puts 'ran'", { "RPERF_ENABLED" => "1", "RPERF_MODE" => "none" }],
    "what a session was" => ["Rperf.start(verbose: true) { 7 }; puts 'ran'", {}],
    "a profile that is elsewhere" => [<<~RUBY, {}],
      begin
        Rperf.start(output: "/dev/full") { raise "mine" }
      rescue RuntimeError => e
        puts "ran" if e.message == "mine"
      end
    RUBY
    "a viewer that is closed" => [<<~RUBY, {}]
      require "rperf/viewer"
      Rperf::Viewer.new(->(_) {})
      puts "ran"
    RUBY
  }.each do |what, (code, env)|
    it "isn't told of there by the program either, which no signal ends (#{what})", emulated: false do
      command = [ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code]
      expect(run(*command, env:)).to have_attributes(stdout: "ran\n", stderr: match(/\S/))
      [2048, 1024 - 20].each do |size|
        write_file("log", "x" * size)
        outcome = run("sh", "-c", 'ulimit -f 2; exec "$@" 2>>log', "sh", *command, env:)
        expect([outcome.stdout, outcome.status.exitstatus]).to eq(["ran\n", 0])
        expect(File.read(path_to("log"))).to eq("x" * size)
      end
    end
  end

  def long_name(number) = "Object#m#{number}_#{"x" * 300}"

  # A profile of more than a block of 512 bytes, in text more than a pipe of a page may hold.
  def many_methods
    body = "(t = Process.clock_gettime(2); nil while Process.clock_gettime(2) < t + 0.002)"
    names = Array.new(300) { |number| long_name(number).delete_prefix("Object#") }
    names.map { |name| "def #{name} = #{body}\n#{name}\n" }.join
  end
end
