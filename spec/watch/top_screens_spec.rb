# frozen_string_literal: true

require "io/console"
require "io/wait"
require "pty"

# A terminal that rperf top has: its keys, what it has printed, and rperf's process.
TopTerminal = Struct.new(:keys, :file, :output, :pid) do
  def type(text) = keys.write(text)
  # All but its size.
  def settings = `stty -a -F #{file.path}`.lines.drop(1)

  # What is on the screen when all of it is drawn anew, with a blank for each gap.
  def drawn
    output.clear
    type("\f")
    deadline = Time.now + 10
    sleep 0.02 until output.include?("quit") || output.include?("any key") || Time.now > deadline
    output.scrub.gsub(/\e\[[\d;]*H/, " ").gsub(/\e\[[\d;?]*[a-zA-Z]/, "").squeeze(" ")
  end
end

RSpec.describe "rperf top on a terminal" do
  include Ports

  # Programs that work, or wait until they are told to end.
  def working(&)
    code = "Thread.current.name = 'worker'\ndef work = loop { 100.times { |i| i.to_s } }\nputs Rperf.listen\nwork"
    listening(code, &)
  end

  # Runs it until the block has ended it. Whatever ends it, the terminal is as it was before, if there still is
  # one. Returns how it ended.
  def screens(*arguments, env: {}, size: [24, 80])
    PTY.open do |keys, file|
      file.winsize = size
      terminal = TopTerminal.new(keys, file, +"", nil)
      before = terminal.settings
      env = clean_environment.merge({ "TERM" => "xterm", "LANG" => "C.UTF-8", "LC_ALL" => nil, "NO_COLOR" => nil }, env)
      terminal.pid = Process.spawn(env, *rperf_command("top", *arguments.map(&:to_s)), chdir: directory, pgroup: true,
                                                                                       in: file, out: file, err: file)
      reader = read(terminal)
      yield terminal
      status = wait_for_end(terminal)
      next status if keys.closed?

      expect(terminal.settings).to eq(before)
      wait_until("end of its output") { !keys.wait_readable(0.1) }
      status
    ensure
      reader&.kill&.join
      leave_nothing_behind(terminal)
    end
  end

  def wait_for_end(terminal)
    status = nil
    wait_until("end of rperf top") { (_, status = Process.wait2(terminal.pid, Process::WNOHANG)) && status }
    terminal.pid = nil
    status
  end

  # If an expectation has failed, it still runs.
  def leave_nothing_behind(terminal)
    return unless terminal&.pid

    Process.kill(:KILL, terminal.pid)
    Process.wait(terminal.pid)
  end

  def read(terminal)
    Thread.new do
      loop { terminal.output << terminal.keys.readpartial(65_536).force_encoding("UTF-8") }
    rescue IOError
      nil # The terminal has been closed.
    end
  end

  def wait_for(terminal, text)
    wait_until(text, limit: 20) { terminal.drawn.match?(text) }
  rescue RuntimeError
    raise "no #{text} on the screen:\n#{terminal.drawn}"
  end

  # The screen is left, and the cursor seen.
  def be_left = match(/\e\[\?25h\e\[\?1049l[^\e]*\z/)

  # Every key on every screen, at every size.
  def all_keys(terminal)
    [[12, 60], [60, 200], [24, 80]].each do |size|
      terminal.file.winsize = size
      Process.kill(:WINCH, terminal.pid)
      %w[Methods Tree Threads Labels Memory].each.with_index(1) do |name, number|
        terminal.type("#{number}tttsgigi*\r\e[A\e[B\e[C\e[D\e[5~\e[6~\e[H\e[Fjk ?xm/x\x7f\rw\x7f\rpp\t\e[Z#{number}")
        wait_for(terminal, /\[#{number} #{name}\]/)
      end
    end
  end

  it "shows what a program does, takes keys, and leaves the terminal as it was" do
    working do |program|
      output = nil
      status = screens(program.pid, "--interval", "0.1") do |terminal|
        output = terminal.output
        wait_for(terminal, /Object#work/)
        expect(terminal.drawn).to include("rperf top #{program.pid} ", "wall 1000 Hz", "[1 Methods]")
        { "2" => /\[2 Tree\]/, "*" => /- Object#work/, "i" => /callers below/, "3" => /R thread 1 "worker"/,
          "4" => /\(no label\)/, "5" => /Ruby heap: live objects/,
          "?" => /Keys \(any key goes back\)/, "x1t" => /since attached/,
          "m" => /since mark 00:.*Object#work/, "p" => /stopped \(p\)/ }.each do |keys, text|
          terminal.type(keys)
          wait_for(terminal, text)
        end
        terminal.type("pwx.pb.gz\r")
        wait_until("file") { File.exist?(path_to("x.pb.gz")) }
        terminal.file.winsize = [12, 60]
        Process.kill(:WINCH, terminal.pid)
        wait_for(terminal, /m mark p stop …/)
        all_keys(terminal)
        terminal.type("q")
      end
      expect(status.exitstatus).to eq(0)
      expect(output).to be_left
      names = Rperf.load(path_to("x.pb.gz")).top(sort: :total).map { |row| row[:name] }
      expect(names & %w[Object#work Integer#times Integer#to_s]).not_to be_empty
      wait_until("end of the session") { ask(program.lines.first).last["session"].nil? }
    end
  end

  it "writes what it has with samples, wall and CPU time, and lines" do
    working do |program|
      screens(program.pid, "--interval", "0.1") do |terminal|
        wait_for(terminal, /Object#work/)
        terminal.type("wx.pb.gz\r")
        wait_until("file") { File.exist?(path_to("x.pb.gz")) }
        terminal.type("q")
      end
      profile = Rperf.load(path_to("x.pb.gz"))
      sums = profile[:samples].map { |row| row.values_at(4, 1, 5) }.transpose.map(&:sum)
      expect(sums).to all(be_positive)
      expect(profile.totals).to include(samples: sums[0], total: sums[1])
      expect(text_report(profile, lines: true)).to match(/ -e:3 \(.*Object#work\)$/)
    end
  end

  it "leaves it so after Ctrl-C, signals, and the end of the program" do
    working do |program|
      outputs = []
      start = lambda do |**options, &block|
        screens(program.pid, "--interval", "0.1", **options) do |terminal|
          outputs << terminal.output
          wait_for(terminal, /Object#work/)
          block.call(terminal)
        end
      end
      expect(start.call { |terminal| terminal.type("\x03") }.exitstatus).to eq(0)
      without_colours = { "NO_COLOR" => "1", "LC_ALL" => "C" }
      status = start.call(env: without_colours) { |terminal| Process.kill(:TERM, terminal.pid) }
      expect(status.termsig).to eq(Signal.list["TERM"])
      expect(outputs.last).to be_ascii_only
      expect(outputs.last).not_to match(/\e\[38;5;\d+m/)
      status = start.call do |terminal|
        Process.kill(:KILL, program.pid)
        wait_for(terminal, /the program #{program.pid} has ended; q quits/)
        terminal.type("2*")
        wait_for(terminal, /\[2 Tree\].*- Object#work.*has ended; q quits/m)
        terminal.type("q")
      end
      expect(status.exitstatus).to eq(0)
      expect(outputs).to all(be_left)
    end
  end

  it "shows saved profiles" do
    rows = [[[["app.rb", "Object#work"], ["app.rb", "<main>"]], 500_000_000, 1, 0, 500, 400_000_000]]
    Rperf.save(path_to("x.pb.gz"), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
    output = nil
    status = screens("x.pb.gz") do |terminal|
      output = terminal.output
      wait_for(terminal, /rperf top x\.pb\.gz 00:01 wall 1000 Hz .*all of it.* 500 ms .*Object#work/m)
      { "t" => /per second, on average/, "2*" => /- <main>/, "m" => /this is a saved profile/ }.each do |keys, text|
        terminal.type(keys)
        wait_until(text) { output.match?(text) || terminal.drawn.match?(text) }
      end
      terminal.type("q")
    end
    expect([status.exitstatus, output]).to match([0, be_left])
  end

  it "shows a program that it starts, whose output doesn't disturb it" do
    write_file("app.rb", "puts 'printed'\ndef work = 100.times { |i| i.to_s }\nwork until File.exist?('go')\nexit 7\n")
    output = nil
    status = screens("--interval", "0.1", ruby, "app.rb") do |terminal|
      output = terminal.output
      wait_for(terminal, /Object#work/)
      expect(output).not_to include("printed")
      write_file("go", "")
      wait_for(terminal, /the program has ended; q quits/)
      terminal.type("q")
    end
    expect(status.exitstatus).to eq(7)
    expect(output).to match(/\e\[\?25h\e\[\?1049l[^\e]*what the program has printed is in (\S+)/)
    file = output[/has printed is in (\S+)/, 1]
    expect([File.read(file), File.stat(file).mode & 0o777]).to eq(["printed\n", 0o600])
    File.delete(file)
  end

  it "stops with all of the program, and has the terminal again when it goes on" do
    write_file("app.rb", "File.write('pid', $$)\ndef work = 100.times { |i| i.to_s }\nwork until File.exist?('go')\n")
    status = screens("--interval", "0.1", "sh", "-c", "'#{ruby}' app.rb; exit 7") do |terminal|
      wait_for(terminal, /Object#work/)
      processes = [terminal.pid, File.read(path_to("pid")).to_i]
      stopped = -> { processes.map { |pid| `ps -o stat= -p #{pid}`.start_with?("T") } }
      # The key, and somebody elsewhere.
      [-> { terminal.type("\x1a") }, -> { Process.kill(:TSTP, terminal.pid) }].each do |stop|
        stop.call
        wait_until("stop of both") { stopped.call.all? }
        terminal.output.clear
        Process.kill(:CONT, -terminal.pid)
        wait_until("screen") { terminal.output.include?("\e[?1049h") }
        wait_for(terminal, /Object#work/)
        expect(stopped.call).to eq([false, false])
      end
      terminal.output.clear
      Process.kill(:CONT, terminal.pid)
      wait_until("screen") { terminal.output.include?("\e[?1049h") }
      write_file("go", "")
      wait_for(terminal, /the programs have ended/)
      terminal.type("q")
    end
    expect(status.exitstatus).to eq(7)
  end

  it "ends when the terminal goes away" do
    working do |program|
      status = screens(program.pid, "--interval", "0.1") do |terminal|
        wait_for(terminal, /Object#work/)
        terminal.keys.close
      end
      expect(status.exitstatus).to eq(1)
    end
  end

  it "prints tables where the terminal can do no more" do
    working do |program|
      output = nil
      screens(program.pid, "--interval", "0.1", env: { "TERM" => "dumb" }) do |terminal|
        output = terminal.output
        wait_until("tables") { output.scan("GVL busy").size > 1 }
        Process.kill(:INT, terminal.pid)
      end
      expect(output).not_to include("\e[")
    end
  end
end
