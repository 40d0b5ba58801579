# frozen_string_literal: true

require "pty"
require "io/console"
require "timeout"

# `rperf report` and `rperf diff` under Ctrl-C, and with pagers that can't be run.
RSpec.describe "report and diff, interrupted" do
  main = ["/app/main.rb", "<main>"]

  # Deep enough for a page longer than a terminal of three rows.
  before do
    rows = Array.new(9) { |i| [[["/app/a.rb", "A#m#{i}"], main], 1_000_000, 1, 0, 1, 0] }
    Rperf.save(path_to("rperf.data"), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
  end

  # Starts the command on a file that is never whole, and sends it a signal in the middle; its outcome.
  def interrupted(*arguments, signal)
    File.mkfifo(path_to("slow"))
    reader, writer = IO.pipe
    command = rperf_command(*arguments, "slow")
    pid = Process.spawn(clean_environment, *command, chdir: directory, out: writer, err: writer)
    writer.close
    # Opens when the command has it open; it waits for more of the file then.
    File.open(path_to("slow"), "wb") do |file|
      file.write(File.binread(path_to("rperf.data"), 20))
      file.flush
      Process.kill(signal, pid)
      status = Timeout.timeout(10 * Commands::SLOWNESS) { Process.wait2(pid).last }
      return [status.termsig, reader.read]
    end
  end

  [["report"], ["report", "--html"], ["diff", "rperf.data"]].each do |arguments|
    it "ends #{arguments.join(" ")} at once while a file is read, as Ctrl-C ends any program" do
      expect(interrupted(*arguments, :INT)).to eq([Signal.list["INT"], ""])
    end
  end

  it "ends likewise by TERM, and not at all where a signal is ignored" do
    expect(interrupted("report", :TERM)).to eq([Signal.list["TERM"], ""])
    command = Shellwords.join(rperf_command("report", "--top", "late"))
    File.mkfifo(path_to("late"))
    outcome = run("sh", "-c", "trap '' INT; #{command} & (sleep 0.3; kill -INT $!; cat rperf.data > late); wait $!")
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    expect(outcome.stdout).to include("A#m1")
  end

  describe "on a terminal" do
    # Runs the command with a terminal of three rows of its own, which the block can read and write; all that was shown,
    # and the status.
    def on_terminal(pager)
      env = clean_environment.merge("TERM" => "xterm", "NO_COLOR" => "1", "PAGER" => pager)
      PTY.spawn(env, *rperf_command("report", "--top"), chdir: directory) do |screen, keys, pid|
        keys.winsize = [3, 80]
        shown = +""
        read = lambda do |until_shown|
          Timeout.timeout(20 * Commands::SLOWNESS) do
            shown << screen.readpartial(4096) until until_shown && shown.include?(until_shown)
          end
        rescue EOFError, Errno::EIO
          shown
        end
        yield read, keys if block_given?
        read.call(nil)
        return [shown.delete("\r"), Process.wait2(pid).last]
      end
    end

    it "leaves Ctrl-C and Ctrl-\\ to the pager" do
      pager = write_file("pager.rb", <<~'RUBY')
        def say(text) = $stdout.syswrite("#{text}\n")
        %w[INT QUIT].each { |name| trap(name) { say "pager got #{name}" } }
        say STDIN.read.lines.first
        say "ready"
        File.open("/dev/tty") { |keys| keys.gets }
        say "pager ends"
      RUBY
      shown, status = on_terminal("#{ruby} #{pager}") do |read, keys|
        { "\x03" => "INT", "\x1c" => "QUIT" }.each do |key, name|
          read.call("ready")
          keys.write(key)
          read.call("pager got #{name}")
        end
        keys.write("q\n")
      end
      expect(shown).to match(/pager ends\n\z/)
      expect(status.exitstatus).to eq(0)
    end

    it "prints the page as it is where the pager can't be run" do
      write_file("not-executable", "#!/bin/sh\n")
      ["no-such-pager", "./not-executable", "exit 126", "/", "", " ", "cat"].each do |pager|
        shown, status = on_terminal(pager)
        expect([status.exitstatus, shown.scan("A#m3").size, shown.scan("A#m8").size]).to eq([0, 1, 1]), pager.inspect
        expect(shown).not_to include(".rb:")
      end
    end
  end
end
