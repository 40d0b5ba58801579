# frozen_string_literal: true

RSpec.describe "rperf ps", vm: true do
  include Ports

  it "lists programs with a port", emulated: false do
    code = "puts Rperf.listen; Process.setproctitle(\"puma: \\e[31m[shop]\"); Rperf.start(mode: :wall); sleep"
    listening(code) do |program|
      wait_until("title") { rperf("ps").stdout.include?("puma") }
      header, *rows = rperf("ps").stdout.lines(chomp: true)
      row = rows.find { |line| line.start_with?(program.pid.to_s) }
      expect(header).to match(/\APID +UP +CPU +RUBY +PORT +SESSION +PROGRAM\z/)
      expect(row).to match(/\A#{program.pid} +\d+s +\d+% +#{RUBY_VERSION} +(idle|busy) +wall, 1000 Hz +puma:  \[31m\[/)
      listed = listed().fetch(program.pid)
      expect(listed).to include("ruby" => RUBY_VERSION, "socket" => program.lines.first, "uid" => Process.uid,
                                "session" => { "mode" => "wall", "frequency" => 1000 })
      expect(listed["uptime_ns"]).to be_between(1, 60_000_000_000)
    end
  end

  it "tells a program that works from one that waits", if: File.directory?("/proc/self/task") do
    listening("puts Rperf.listen; loop {}") do |program|
      expect(listed.fetch(program.pid)).to include("state" => "busy", "cpu" => be > 0.01)
    end
    listening("puts Rperf.listen; sleep") do |program|
      wait_until("rest") { listed.fetch(program.pid)["state"] == "idle" }
      expect(listed.fetch(program.pid)["cpu"]).to be < 0.5
    end
  end

  it "finds programs wherever their ports are", if: File.exist?("/proc/net/unix") do
    listening("puts Rperf.listen(directory: #{directory.dump}); sleep") do |program|
      expect(listed.fetch(program.pid)["socket"]).to eq(program.lines.first)
    end
    Dir.mkdir(path_to("other"))
    listening("puts Rperf.listen; sleep", env: { "TMPDIR" => path_to("other") }) do |program|
      expect(program.lines.first).to start_with(path_to("other"))
      expect(listed).to include(program.pid)
    end
  end

  it "says so of one that is stopped, at once" do
    listening("puts Rperf.listen; sleep") do |program|
      Process.kill(:STOP, program.pid)
      wait_until("stop") { listed.fetch(program.pid)["state"] == "stopped" }
      expect(listed.fetch(program.pid)["cpu"]).to be_nil
      expect(rperf("ps").stdout).to match(/^#{program.pid} +- +- +- +stopped +-  .*ruby/)
    end
  end

  it "removes what dead programs have left" do
    listening("puts Rperf.listen; sleep") do |program|
      Process.kill(:KILL, program.pid)
      wait_until("end") { !answers?(program.lines.first) }
      expect(sockets).to eq(program.lines)
      expect(listed).to be_empty
      expect(sockets).to be_empty
    end
  end

  it "lists no server that only pretends, and waits for none" do
    users = File.join(temporary_directory, "rperf-#{Process.euid}")
    Dir.mkdir(users, 0o700)
    UNIXServer.open(File.join(users, "#{Process.ppid}-1.sock")) do
      UNIXServer.open(File.join(users, "#{Process.pid}-1.sock")) do
        outcome = rperf("ps", limit: 20)
        silent = outcome.stdout.lines.grep(/no answer/).map { |line| line[/\d+/].to_i }
        expect(silent & [Process.pid, Process.ppid]).to eq([Process.pid])
        expect(listed.keys).to eq([Process.pid])
      end
    end
  end

  it "says how a program gets a port, if there is none" do
    # Others may have one: none of them is in a PID namespace of its own, where that can be made.
    alone = %w[unshare --pid --fork --mount --mount-proc --kill-child --propagation private]
    outcome = run(*alone_if_possible(alone), *rperf_command("ps"))
    advice = "start one with RPERF_LISTEN=1 (and rperf in its Gemfile)"
    expect(outcome.stdout).to eq("no Ruby program with a port; #{advice}\n")
    expect(outcome.status.exitstatus).to eq(0)
  end

  def alone_if_possible(alone)
    run(*alone, "true").status.success? ? alone : []
  rescue Errno::ENOENT
    []
  end
end
