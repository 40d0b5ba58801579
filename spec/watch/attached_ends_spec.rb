# frozen_string_literal: true

# A program in which clients have begun a session, and which takes away what that needs.
RSpec.describe "A program that is attached to", vm: true, if: File.directory?("/proc/self/task") do
  include Ports

  # With a thread that works, and one that does `code` once there is a session.
  def attached(code, env: {}, &)
    text = <<~RUBY
      def work = 100.times(&:to_s)
      path = Rperf.listen
      puts path
      $later = Thread.new do
        sleep 0.01 until File.exist?("go")
        #{code}
      end
      work && sleep(0.001) until $ended
    RUBY
    listening(text, env:) { |program| with_session(program.lines.first) { |port| yield program, port } }
  end

  # A session of wall time, which the connection holds.
  def with_session(path)
    UNIXSocket.open(path) do |port|
      port.timeout = 20
      port.write("POST /v1/session HTTP/1.1\r\n\r\n")
      expect(port.readpartial(1000)).to start_with("HTTP/1.1 200")
      yield port
    end
  end

  # Until the connection ends, while something is asked now and then.
  def expect_end(port)
    wait_until("end of the connection") do
      port.write("GET /v1/hello HTTP/1.1\r\n\r\n")
      port.wait_readable(0.2) && port.readpartial(1 << 16).nil?
    rescue SystemCallError, EOFError
      true
    end
  end

  def told(name)
    wait_until(name) { File.exist?(path_to(name)) && File.read(path_to(name)).end_with?("\n") }
    File.read(path_to(name)).chomp
  end

  it "becomes another program, whose port knows of no session" do
    code = 'exec(%q(RUBY), "-I", %q(LIB), "-rrperf", "-e", "Rperf.listen; File.write(%q(told), %(x\n)); sleep")'
    attached(code.sub("RUBY", ruby).sub("LIB", File.join(Commands::ROOT, "lib"))) do |program, port|
      write_file("go", "")
      expect_end(port)
      told("told")
      expect(sockets.size).to eq(1)
      expect(ask(sockets.first).last).to include("pid" => program.pid, "session" => nil, "clients" => 1)
    end
  end

  it "goes on as a daemon, which nobody is attached to", if: Process.respond_to?(:daemon) do
    code = <<~'RUBY'
      Process.daemon(true, true)
      File.write("daemon", "#{$$} #{Rperf.running?} #{Thread.list.size}\n")
      sleep
    RUBY
    attached(code) do |_, port|
      write_file("go", "")
      expect_end(port)
      pid, *seen = told("daemon").split
      expect(seen).to eq(%w[false 1])
      wait_until("port") { sockets.any? { |path| answers?(path) } }
      expect(ask(sockets.find { |path| answers?(path) }).last).to include("pid" => pid.to_i, "session" => nil)
    ensure
      Process.kill(:KILL, pid.to_i) if pid
    end
  end

  [{}, { "RPERF_LISTEN_HELPER" => "1" }].each do |env|
    it "closes all descriptors that it doesn't know, and runs on without a session, #{env.keys.join}" do
      attached(<<~'RUBY', env: { "RPERF_LISTEN" => "1", **env }) do |_, port|
        3.upto(200) { |number| (IO.for_fd(number).close rescue nil) }
        others = Array.new(20) { File.open("/dev/null", "w") }
        sleep 0.01 until File.exist?("look")
        names = -> { Dir["/proc/self/task/*/comm"].map { |path| File.exist?(path) ? File.read(path) : "" } }
        sleep 0.01 until names.call.none?(/rperf/)
        written = others.sum { |file| file.write("x") }
        File.write("told", "#{written} #{Rperf.start(mode: :wall) { work }.class}\n")
      RUBY
        write_file("go", "")
        expect_end(port)
        write_file("look", "")
        expect(told("told")).to eq("20 Rperf::Profile")
      end
    end
  end

  it "can't be profiled where the ThreadGroup is frozen, which each command says" do
    listening("ThreadGroup::Default.freeze; puts Rperf.listen; loop { 100.times(&:to_s) }") do |program|
      why = "the VM makes no thread for the answer (a frozen ThreadGroup, or too many threads)"
      [%w[attach -d 1], %w[top --once], %w[top --json --once]].each do |name, *options|
        outcome = rperf(name, *options, program.pid.to_s, limit: 20)
        expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /^rperf: \d+: #{Regexp.escape(why)}/])
      end
      expect(ask(program.lines.first).last).to include("session" => nil)
    end
  end
end
