# frozen_string_literal: true

# Clients that come and go 20 times a second, and leave in the middle of whatever they have asked for. Two seconds,
# or ten minutes with RPERF_LONG=1 (bin/test --long).
RSpec.describe "A port whose clients come and go", vm: true, if: File.exist?("/proc/self/fd") do
  include Ports

  requests = ["GET /v1/hello", "GET /v1/stacks", "POST /v1/session", "GET /v1/profile?seconds=0.1", "GET /v1/snapshot",
              "GET /v1/delta", "GET /v1/memory", "GET /v1/memory?objects=1", "GET /v1/st"]

  # Asks, and leaves after a while, be there an answer or not.
  def come_and_go(path, request, seconds)
    UNIXSocket.open(path) do |port|
      port.write(request.end_with?("/v1/st") ? request : "#{request} HTTP/1.1\r\n\r\n")
      port.readpartial(1 << 16) if port.wait_readable(seconds)
    end
  rescue SystemCallError, EOFError
    nil # The port has enough clients.
  end

  seconds = Commands::LONG ? 600 : 2

  # Four clients that come and go while the block says so.
  def with_clients(path, requests)
    clients = Array.new(4) do |number|
      Thread.new(Random.new(number)) do |random|
        while yield
          come_and_go(path, requests.sample(random:), random.rand(0.3))
          sleep(0.05)
        end
      end
    end
    clients.each(&:join)
  end

  def native_threads(pid) = Dir.children("/proc/#{pid}/task").size

  it "goes on, and nothing of them is left" do
    code = <<~'RUBY'
      def work(depth = 9) = depth.zero? ? 50.times.map(&:to_s) : work(depth - 1)
      3.times { Thread.new { loop { rand(200).times { work }; Thread.new { work }.join; sleep(rand * 0.3) } } }
      puts Rperf.listen
      sleep
    RUBY
    listening(code) do |program|
      path = program.lines.first
      count = -> { Dir.children("/proc/#{program.pid}/fd").size }
      ask(path, "/v1/stacks")
      before = count.call
      over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      with_clients(path, requests) { Process.clock_gettime(Process::CLOCK_MONOTONIC) < over }
      wait_until("end of all sessions") { ask(path).last.values_at("session", "clients") == [nil, 1] }
      # Its threads start others for a moment.
      wait_until("its own threads only") do
        answer = ask(path, "/v1/stacks").last
        answer["source"] == "vm" && answer["threads"].size == 4
      end
      wait_until("end of the connections") { count.call <= before }
    end
  end

  it "goes on also where the program does everything at once" do
    program = File.join(__dir__, "../torture", "program.rb")
    command = [ruby, "-W0", "-I#{Commands::ROOT}/lib", "-rrperf", program, seconds.to_s, "1"]
    running = Thread.new { run(*command, env: { "RPERF_LISTEN" => "1" }, limit: seconds + Commands::TIME_LIMIT) }
    wait_until("port") { sockets.any? }
    path = sockets.first
    with_clients(path, requests) { running.alive? }
    outcome = running.value
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    expect(JSON.parse(outcome.stdout).first["growth"]).to be < 30_000
    expect(File.exist?(path)).to be(false)
  end

  # What the process has of its own, in KiB.
  def own_memory(pid) = File.read("/proc/#{pid}/status")[/^RssAnon:\s+(\d+)/, 1].to_i

  it "keeps nothing of sessions that have ended" do
    code = "2.times { Thread.new { sleep } }\nputs Rperf.listen\nloop { 100.times(&:to_s) }"
    listening(code) do |program|
      path = program.lines.first
      state = lambda do
        wait_until("end of the session") { ask(path).last["session"].nil? }
        wait_until("end of the helper") { ask(path, "/v1/stacks").last["threads"].size == 3 }
        wait_until("end of the connections") { ask(path).last["clients"] == 1 }
        own_memory(program.pid)
      end
      visit = -> { come_and_go(path, "POST /v1/session", 20) }
      50.times { visit.call }
      memory = state.call
      left = -> { [Dir.children("/proc/#{program.pid}/fd").size, native_threads(program.pid)] }
      before = left.call
      100.times { visit.call }
      # Each would leave 40 kB, and there are 2,000. What malloc keeps of what is free comes and goes.
      expect(state.call - memory).to be < 5000 * Commands::SLOWNESS
      # A native thread may be about to end.
      wait_until("no more than #{before}") { left.call.zip(before).all? { |now, then_| now <= then_ } }
    end
  end

  it "has little memory for clients that never read, and others are answered" do
    code = "def deep(depth) = depth.zero? ? sleep : deep(depth - 1)\nRperf.start(mode: :wall)\n" \
           "500.times { |i| Thread.new { deep(i % 50) } }\nputs Rperf.listen\nloop { 100.times(&:to_s) }"
    listening(code) do |program|
      path = program.lines.first
      wait_until("table") { pull(path) > 3000 }
      before = own_memory(program.pid)
      silent = Array.new(7) { UNIXSocket.new(path) }
      silent.each { |socket| socket.write("GET /v1/delta HTTP/1.1\r\n\r\n" * 50) }
      5.times { wait_until("an answer") { pull(path) > 3000 } }
      # Two MB are said to be enough.
      expect(own_memory(program.pid) - before).to be < 4096
    ensure
      silent&.each(&:close)
    end
  end

  # Bytes of a page; 0 if the port has no room for this client, and may have closed before it asks.
  def pull(path)
    UNIXSocket.open(path) do |port|
      port.timeout = 20
      port.write("GET /v1/delta?wait_ms=200 HTTP/1.1\r\nConnection: close\r\n\r\n")
      answer = port.read
      answer.start_with?("HTTP/1.1 200") ? answer.bytesize : 0
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    0
  end
end
