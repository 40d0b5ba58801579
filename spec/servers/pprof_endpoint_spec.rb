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
    File.binwrite(in_folder("got.pb.gz"), response.body)
    read_profile(in_folder("got.pb.gz"))
  end

  it "profiles the worker that got the request, several clients at a time, and ends with its server" do
    server = start_puma("-t", "8:8", "-w", "2", app: app("pprof.ru"))
    expect(fetch(server, "/profile?seconds=1", key: "no").code).to eq("403")
    expect(fetch(server, "/cmdline").body).to include("puma: cluster worker")

    clients = Array.new(3) { Thread.new { fetch(server, "/profile?seconds=1.5") } }
    busy = Thread.new { server.get("/busy") }
    clients.map(&:value).each do |response|
      expect(profile(response)[:mode]).to eq(:wall)
      comments = PprofMessage.new(Zlib.gunzip(response.body)).comments
      workers = Dir["/proc/#{server.pid}/task/*/children"].flat_map { |path| File.read(path).split }
      named = comments.filter_map { |line| line[/\Aprocess (\d+): puma: cluster worker/, 1] }
      expect(workers).to include(*named)
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
    server = start_puma("-t", "4:4", app: app("pprof.ru"), env: { "PROFILE" => in_folder("app.pb.gz") })
    data = profile(fetch(server, "/profile?seconds=1"))
    stop_server(server)
    whole = read_profile(in_folder("app.pb.gz"))
    expect([data[:mode], data[:frequency]]).to eq([:cpu, 100])
    expect(data[:duration_ns]).to be_between(9e8, whole[:duration_ns])
  end
end
