# frozen_string_literal: true

require "net/http"
require "zlib"

# `rperf serve`: one address for all programs with a port.
RSpec.describe "rperf serve", if: RUBY_PLATFORM.include?("linux") do
  include Ports

  # Starts it, yields its first line, and ends it by a signal; its status and the other lines.
  def serving(*arguments, env: {}, signal: :TERM)
    reader, writer = IO.pipe
    command = rperf_command("serve", *arguments)
    pid = Process.spawn(clean_environment.merge(env), *command, chdir: directory, err: writer)
    writer.close
    yield reader.gets
    Process.kill(signal, pid)
    status = Process.wait2(pid).last
    [status.exitstatus, reader.read]
  ensure
    reader.close
  end

  # Programs that no other one on this machine is called like; each is told to run on in a loop.
  def name = File.basename(File.dirname(directory))
  def busy(more = "") = "$0 = 'app of #{name}'; #{more}; puts Rperf.listen; loop { 1.0.to_s }"

  def get(url, token, path, headers = {})
    uri = URI(url)
    headers = { "Authorization" => "Bearer #{token}", **headers }.compact
    Net::HTTP.start(uri.host, uri.port, open_timeout: nil, read_timeout: 60) do |http|
      http.get("/debug/pprof/#{path}", headers)
    end
  end

  def told(line)
    [line[%r{http://127\.0\.0\.1:\d+}], line[/the token is in (\S+)$/, 1]]
  end

  # The profile, as others see it.
  def message(response)
    expect([response.code, response["Content-Type"]]).to eq(["200", "application/octet-stream"])
    PprofMessage.new(Zlib.gunzip(response.body))
  end

  def pids(message) = message.labels.map { |labels| labels["%pid"] }.uniq.map(&:to_i)

  it "gives ops and objects, too, if it is asked for them", emulated: false do
    listening("$0 = 'app of #{name}'; puts Rperf.listen; loop { Rperf.op('SELECT 4711', kind: :sql) { '1' * 9 } }") do
      serving("--http", "127.0.0.1:0", "--match", "^app of #{name}") do |line|
        url, path = told(line)
        ask = ->(query) { get(url, File.read(path).chomp, "profile?seconds=0.5#{query}") }
        expect(message(ask[""]).types).to eq(%w[samples wall cpu gvl_blame])
        with_both = message(ask["&measure=alloc%3Dsampled%2Cops"])
        expect(with_both.types).to include("wall", "alloc_objects", "alloc_space")
        expect(with_both.function_names).to include("[SQL] SELECT ?")
        refused = ask["&measure=no"]
        expect([refused.code, refused.body]).to match(["400", /measure/])
      end
    end
  end

  it "gives one profile of the programs that match then, and says who is missing", emulated: false do
    listening(busy("fork { puts Rperf.listen; loop { 1.to_s } }")) do |program|
      outcome = serving("--http", "127.0.0.1:0", "--match", "^app of #{name}") do |line|
        url, path = told(line)
        token = File.read(path).chomp
        expect(File.stat(path).mode & 0o777).to eq(0o600)
        wait_until("ports") { sockets.count { |socket| answers?(socket) } == 2 }
        first = message(get(url, token, "profile?seconds=0.5"))
        expect(pids(first)).to match_array(sockets.map { |socket| File.basename(socket).to_i })

        listening(busy) do |third|
          expect(get(url, token, "").body.lines.grep(/app of/).size).to eq(3)
          second = message(get(url, token, "profile?seconds=0.5&frequency=500"))
          expect([pids(second).size, pids(second)]).to match([3, include(program.pid, third.pid)])

          Process.kill(:STOP, third.pid)
          both = Array.new(2) { Thread.new { message(get(url, token, "profile?seconds=0.5")) } }.map(&:value)
          both.each do |profile|
            expect([pids(profile).size,
                    profile.comments]).to match([2, include(/not all of it: #{third.pid} .*SIGSTOP/)])
          end
        end

        { "heap" => "501", "profile?seconds=x" => "400", "profile?mode=x" => "400" }.each do |place, code|
          expect(get(url, token, place).code).to eq(code)
        end
        expect(get(url, nil, "").code).to eq("401")
        expect(get(url, token, "", { "Host" => "evil.example" }).code).to eq("403")
        expect(get(url, token, "", { "Origin" => "http://127.0.0.1" }).code).to eq("403")
      end
      # Once, for both clients; a busy machine may have others.
      stopped = outcome[1].lines.grep(/\Arperf: \d+ \(app of #{name}\): was stopped \(SIGSTOP\)\n\z/)
      expect([outcome[0], stopped.size]).to eq([0, 1])
    end
  end

  it "needs no token at a socket, and waits for no program" do
    socket = path_to("serve.sock")
    listening("$0 = 'app of #{name}'; puts Rperf.listen; Signal.trap(:TERM) {}; sleep") do |program|
      outcome = serving("--http", socket, "--match", name, signal: :INT) do |line|
        expect(line).to eq("rperf: serving profiles at the socket #{socket}, below /debug/pprof/\n")
        expect(File.stat(socket).mode & 0o777).to eq(0o600)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        status, body = ask(socket, "/debug/pprof/profile?seconds=0.2")
        expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be < 15
        expect([status, body["error"]]).to match([503, /#{program.pid}: nothing was profiled, as no Ruby code ran/])
      end
      expect([outcome[0], File.exist?(socket)]).to eq([0, false])
    end
    serving("--http", socket, "--match", name) do
      expect(ask(socket, "/debug/pprof/profile?seconds=0.2")).to match([503, include("error" => /no such program/)])
    end
  end

  it "keeps nobody out for connections that ask nothing, and ends at once while there are some", alone: true do
    idle = []
    began = nil
    outcome = serving("--http", "127.0.0.1:0", "--match", name) do |line|
      url, path = told(line)
      20.times { idle << TCPSocket.new("127.0.0.1", URI(url).port) }
      rperf("ps")
      expect(get(url, File.read(path).chomp, "").code).to eq("200")
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be < 1.5
    expect(outcome).to eq([0, ""])
    idle.each(&:close)
    tokens = -> { Dir[File.join(temporary_directory, "rperf-*", "*.token")].size }
    serving("--http", "127.0.0.1:0", signal: :KILL) { expect(tokens.call).to eq(1) }
    expect { rperf("ps") }.to change(&tokens).from(1).to(0)
  end

  it "says in a line what can't be" do
    taken = TCPServer.new("127.0.0.1", 0)
    address = "127.0.0.1:#{taken.addr[1]}"
    { ["--http", "0.0.0.0:6060"] => [2, /\Arperf: --http must be 127\.0\.0\.1:PORT or .*, not '0\.0\.0\.0:6060'.*\n\z/],
      ["--http", address] => [1, /\Arperf: can't listen at #{address} \(Address already in use\); --http .*free\n\z/],
      ["--http", __FILE__] => [1, /\Arperf: can't listen at #{__FILE__} \(Address already in use\); name a path where/],
      ["--http", "/no/such/socket"] => [1, %r{\Arperf: can't listen at /no/such/socket \(.*\)\n\z}],
      ["--match", "("] => [2, /\Arperf: --match: .*\n\z/] }.each do |arguments, expected|
      outcome = rperf("serve", *arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to match(expected)
    end
  ensure
    taken&.close
  end
end
