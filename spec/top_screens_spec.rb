# frozen_string_literal: true

require "io/console"
require "pty"

RSpec.describe "rperf top on a terminal" do
  include Ports

  # A terminal that rperf top has: its keys, what it has printed, and rperf's process.
  Terminal = Struct.new(:keys, :file, :output, :pid) do
    def type(text) = keys.write(text)
    def settings = `stty -a -F #{file.path}`

    # What is on the screen when all of it is drawn anew.
    def drawn
      output.clear
      type("\f")
      sleep 0.02 until output.include?("quit") || output.include?("any key")
      output.gsub(/\e\[[\d;?]*[a-zA-Z]/, "")
    end
  end

  # Programs that work, or wait until they are told to end.
  def working(&) = listening("def work = loop { 100.times { |i| i.to_s } }\nputs Rperf.listen\nwork", &)

  # Runs it until the block has ended it. Whatever ends it, the terminal is as it was before. Returns how it ended.
  def screens(*arguments, env: {}, size: [24, 80])
    PTY.open do |keys, file|
      file.winsize = size
      terminal = Terminal.new(keys, file, +"", nil)
      before = terminal.settings
      env = clean_environment.merge({ "TERM" => "xterm", "LANG" => "C.UTF-8", "LC_ALL" => nil, "NO_COLOR" => nil }, env)
      terminal.pid = Process.spawn(env, *rperf_command("top", *arguments.map(&:to_s)), chdir: folder, pgroup: true,
                                                                                       in: file, out: file, err: file)
      reader = read(terminal)
      yield terminal
      status = nil
      wait_until("end of rperf top") { (_, status = Process.wait2(terminal.pid, Process::WNOHANG)) && status }
      expect(terminal.settings).to eq(before)
      reader.kill.join
      status
    end
  end

  def read(terminal)
    Thread.new { loop { terminal.output << terminal.keys.readpartial(65_536).force_encoding("UTF-8") } }
  end

  def wait_for(terminal, text)
    wait_until(text) { terminal.drawn.match?(text) }
  end

  # The screen is left, and the cursor seen.
  def be_left = match(/\e\[\?25h\e\[\?1049l[^\e]*\z/)

  it "shows what a program does, takes keys, and leaves the terminal as it was" do
    working do |program|
      output = nil
      status = screens(program.pid, "--interval", "0.1") do |terminal|
        output = terminal.output
        wait_for(terminal, /Object#work/)
        expect(terminal.drawn).to include("rperf top  #{program.pid} ", "wall 1000 Hz", "GVL busy", "[1 Methods]")
        { "2" => /\[2 Tree\]/, "*" => /- Object#work/, "i" => /callers below/, "3" => /R thread 1/, "4" => /\(no label\)/,
          "?" => /Keys \(any key goes back\)/, "x1t" => /since attached/, "m" => /since mark 00:/, "p" => /stopped \(p\)/ }
          .each do |keys, text|
            terminal.type(keys)
            wait_for(terminal, text)
          end
        terminal.type("pwx.pb.gz\r")
        wait_until("file") { File.exist?(in_folder("x.pb.gz")) }
        terminal.file.winsize = [12, 60]
        Process.kill(:WINCH, terminal.pid)
        wait_for(terminal, /m mark  p stop  …/)
        terminal.type("q")
      end
      expect(status.exitstatus).to eq(0)
      expect(output).to be_left
      expect(Rperf.load(in_folder("x.pb.gz")).top.map { |row| row[:name] }).to include("Integer#to_s")
      wait_until("end of the session") { ask(program.lines.first).last["session"].nil? }
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
        terminal.type("q")
      end
      expect(status.exitstatus).to eq(0)
      expect(outputs).to all(be_left)
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
