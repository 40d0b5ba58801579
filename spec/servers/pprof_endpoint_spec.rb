# frozen_string_literal: true

require "net/http"
require "zlib"

RSpec.describe "Rperf::PprofEndpoint in servers", skip: Servers.missing("puma") do
  include Servers
  include Ports

  def fetch(server, path, key: "secret")
    Net::HTTP.start(Servers::HOST, server.port, open_timeout: nil, read_timeout: 60) do |http|
      http.get("/debug/pprof#{path}", { "X-Key" => key })
    end
  end

  def profile(response)
    expect([response.code, response["Content-Type"]]).to eq(["200", "application/octet-stream"])
    File.binwrite(path_to("got.pb.gz"), response.body)
    read_profile(path_to("got.pb.gz"))
  end

  it "profiles the worker that got the request, several clients at a time, and ends with its server", emulated: false do
    server = start_puma("-t", "8:8", "-w", "2", app: app("pprof.ru"))
    expect(fetch(server, "/profile?seconds=1", key: "no").code).to eq("403")
    expect(fetch(server, "/cmdline").body).to include("puma: cluster worker")

    clients = Array.new(3) { Thread.new { fetch(server, "/profile?seconds=1.5") } }
    busy = Thread.new { server.get("/busy") }
    clients.map(&:value).each do |response|
      expect(profile(response)[:mode]).to eq(:wall)
      comments = PprofMessage.new(Zlib.gunzip(response.body)).comments
      named = comments.filter_map { |line| line[/\Aprocess (\d+): puma: cluster worker/, 1] }
      expect(workers(server).map(&:to_s)).to include(*named)
      expect(named.size).to eq(1)
    end
    expect(busy.value.code).to eq("200")

    long = Thread.new { fetch(server, "/profile?seconds=50") }
    wait_until("session") { sockets.any? { |socket| ask(socket).last["live"] } }
    # Not how long Puma takes to end is measured: see PUMA_CONFIG.
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Process.kill(:TERM, server.pid)
    expect(profile(long.value)[:samples]).not_to be_empty
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be < 20
    wait_until("end of Puma") { server.status ||= Process.wait2(server.pid, Process::WNOHANG)&.last }
  end

  it "gives what the program's own session collects meanwhile" do
    server = start_puma("-t", "4:4", app: app("pprof.ru"), env: { "PROFILE" => path_to("app.pb.gz") })
    data = profile(fetch(server, "/profile?seconds=1"))
    stop_server(server)
    whole = read_profile(path_to("app.pb.gz"))
    expect([data[:mode], data[:frequency]]).to eq([:cpu, 100])
    expect(data[:duration_ns]).to be_between(9e8, whole[:duration_ns])
  end

  # The guide's app, for collectors and for Go's tools.
  it "takes the token as a collector and as Go's tools send it" do
    code = File.read(File.join(Commands::ROOT, "docs/guide/fleets.md"))[/^```ruby norun: in a config.ru\n(.*?)^```/m, 1]
    write_file("config.ru", "#{code}run ->(_) { [200, {}, []] }\n")
    server = start_puma("-t", "2:2", env: { "PPROF_TOKEN" => "sesame" })
    short = URI("#{server.url}/debug/pprof/profile?seconds=0.1")
    codes = ["Bearer sesame", "Basic #{["rperf:sesame"].pack("m0")}", "Bearer other", nil].map do |right|
      Net::HTTP.get_response(short, { "Authorization" => right }.compact).code
    end
    expect(codes).to eq(%w[200 200 403 403])
    unless Guide.without_go_pprof
      address = "http://rperf:sesame@#{Servers::HOST}:#{server.port}/debug/pprof/profile?seconds=1"
      outcome = run("go", "tool", "pprof", "-top", address, env: { "PPROF_TMPDIR" => directory })
      expect(outcome.stdout).to match(/^Type: wall$/).and match(/^Duration: 1\.?\d*s, Total samples = /)
    end
    stop_server(server)
  end
end
