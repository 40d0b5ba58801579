# frozen_string_literal: true

require "net/http"

# The port of a program at a loopback address, for those who have its token.
RSpec.describe "The port of a program over TCP", if: RUBY_PLATFORM.include?("linux") do
  include Ports

  # The response to a GET, with these headers.
  def get(url, headers = {})
    uri = URI(url)
    Net::HTTP.start(uri.host, uri.port, open_timeout: nil, read_timeout: 20) do |http|
      http.get(uri.request_uri, headers)
    end
  end

  def bearer(token) = { "Authorization" => "Bearer #{token}" }

  def token_file(socket) = socket.sub(/\.sock\z/, ".token")
  def told_token(socket) = File.read(token_file(socket)).chomp

  it "answers those who have the token, and no pages of web sites" do
    listening("puts [Rperf.listen('tcp://127.0.0.1:0'), Rperf.listen].join(\"\\n\"); loop { 1.0.to_s }") do |program|
      url, socket = File.readlines(path_to(".listening1"), chomp: true)
      expect([url, File.basename(socket)]).to match([%r{\Ahttp://127\.0\.0\.1:\d+\z}, /\A#{program.pid}-\d+\.sock\z/])
      token = told_token(socket)
      expect([token, File.stat(socket.sub(".sock", ".token")).mode & 0o777]).to match([/\A\h{32}\z/, 0o600])
      hello = get("#{url}/v1/hello", bearer(token))
      expect([hello.code,
              JSON.parse(hello.body)]).to match(["200", include("pid" => program.pid, "tcp" => URI(url).port)])
      basic = { "Authorization" => "Basic #{["rperf:#{token}"].pack("m0")}" }
      { {} => "401", bearer("#{token}0") => "401", basic => "200",
        { **basic, "Origin" => "http://evil.example" } => "403",
        { **basic, "Host" => "evil.example" } => "403" }.each do |headers, code|
        response = get("#{url}/v1/hello", headers)
        expect([headers, response.code]).to eq([headers, code])
        expect(response.to_hash.keys.grep(/access-control/)).to be_empty
      end
      # Connections that ask nothing keep nobody out.
      idle = Array.new(12) { TCPSocket.new("127.0.0.1", URI(url).port) }
      expect(get("#{url}/v1/hello", bearer(token)).code).to eq("200")
      idle.each(&:close)
      fetch_by_go(url, token) unless Guide.without_go_pprof
    end
    expect(Dir[File.join(temporary_directory, "rperf-*", "*.token")].size).to eq(1) # It was killed.
    rperf("ps")
    expect(Dir[File.join(temporary_directory, "rperf-*", "*.token")]).to be_empty
  end

  # As Go's tool has the token.
  def fetch_by_go(url, token)
    source = "#{url.sub("//", "//rperf:#{token}@")}/debug/pprof/profile?seconds=1"
    outcome = run("go", "tool", "pprof", "-top", "-nodecount=20", source, env: { "PPROF_TMPDIR" => directory })
    expect([outcome.status.exitstatus, outcome.stdout]).to match([0, /Type: wall.*Float#to_s/m])
  end

  it "is there for children with port 0, at addresses of their own, and else for their parents alone", vm: true do
    code = <<~RUBY
      puts Rperf.listen(ENV.fetch("ADDRESS"))
      fork { sleep }
      sleep
    RUBY
    [["tcp://127.0.0.1:0", 2], ["tcp://127.0.0.1:#{Servers.free_port}", 1]].each do |address, count|
      listening(code, env: { "ADDRESS" => address, "RPERF_LISTEN_TOKEN" => "a-token-of-our-own" }) do |program|
        wait_until("ports") { sockets.count { |path| answers?(path) } == 2 }
        numbers = sockets.filter_map { |path| ask(path).last["tcp"] }
        expect([numbers.size, numbers.uniq.size]).to eq([count, count])
        expect(numbers).to include(URI(program.lines.first).port)
        codes = numbers.map { |number| get("http://127.0.0.1:#{number}/v1/hello", bearer("a-token-of-our-own")).code }
        expect(codes.uniq).to eq(["200"])
      end
      rperf("ps")
    end
    expect(Dir[File.join(temporary_directory, "rperf-*", "*")]).to be_empty
  end

  it "goes on at its number in a daemon", vm: true do
    number = Servers.free_port
    code = <<~RUBY
      puts Rperf.listen("tcp://127.0.0.1:#{number}")
      Process.daemon(true, true)
      File.write("daemon", Process.pid)
      sleep
    RUBY
    listening(code) do
      wait_until("daemon") { File.exist?(path_to("daemon")) && !File.empty?(path_to("daemon")) }
      # The parent's can still answer, and its token is gone first.
      socket = nil
      wait_until("port") { socket = sockets.find { |path| answers?(path) && File.exist?(token_file(path)) } }
      token = told_token(socket)
      pid = JSON.parse(get("http://127.0.0.1:#{number}/v1/hello", bearer(token)).body)["pid"]
      expect(pid).to eq(File.read(path_to("daemon")).to_i)
    ensure
      Process.kill(:KILL, File.read(path_to("daemon")).to_i)
    end
  end

  it "is a socket alone where another process has the number, such as the one that has set the variable" do
    taken = TCPServer.new("127.0.0.1", 0)
    address = "tcp://127.0.0.1:#{taken.addr[1]}"
    code = "puts Rperf.listen, Dir[Rperf.listen]"
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env: { "RPERF_LISTEN" => address })
    expect([outcome.stdout, outcome.stderr]).to match([/\A(.*\.sock)\n\1\n\z/, ""])
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "Rperf.listen(#{address.dump})")
    expect(outcome.stderr).to include("no port: can't listen at #{address[6..]} (Address already in use")
  ensure
    taken&.close
  end

  it "is left out with one line where it can't be, and the program runs" do
    { { "RPERF_LISTEN" => "tcp://0.0.0.0:1" } => "RPERF_LISTEN must be 1, 0, the absolute path of a directory or " \
                                                 "tcp://127.0.0.1:PORT, not 'tcp://0.0.0.0:1'",
      { "RPERF_LISTEN" => "tcp://127.0.0.1:0", "RPERF_LISTEN_TOKEN" => "short" } =>
        "no port: RPERF_LISTEN_TOKEN must have 16 to 256 letters, digits, '-', '_' or '.'" }.each do |env, line|
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "puts 1", env:)
      expect([outcome.stdout, outcome.stderr]).to eq(["1\n", "rperf: #{line}; running without a port\n"])
    end
    expect { Rperf.listen("tcp://localhost:1") }
      .to raise_error(ArgumentError, 'address: must be "tcp://127.0.0.1:PORT", not "tcp://localhost:1"')
  end
end
