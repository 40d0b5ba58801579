# frozen_string_literal: true

require "socket"
require "zlib"
require_relative "../bench/support/protobuf"

# `rperf push`, to a server of ours that says what it was sent.
RSpec.describe "rperf push", if: RUBY_PLATFORM.include?("linux") do
  include Ports
  include Bench::Protobuf

  # A request that came: its first line, headers and body.
  let(:requests) { Queue.new }

  # Answers each request with the next of these statuses, and the last one again and again; yields the URL.
  def receiver(*statuses)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { take(server.accept, statuses.size > 1 ? statuses.shift : statuses.first) } }
    yield "http://127.0.0.1:#{server.addr[1]}"
  ensure
    thread&.kill&.join
    server&.close
  end

  def take(client, status)
    line = client.gets("\r\n", chomp: true)
    headers = client.each_line("\r\n", chomp: true).take_while { |header| !header.empty? }
    headers = headers.to_h { |header| header.split(": ", 2) }.transform_keys(&:downcase)
    requests << [line, headers, client.read(headers.fetch("content-length").to_i)]
    client.write("HTTP/1.1 #{status} x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nsaid")
  ensure
    client.close
  end

  # The labels of the only series in a push.v1.PushRequest, the profile in it, and its id.
  def decoded(body)
    series = fields(fields(body).fetch(1).first)
    pairs = series[1].to_h { |pair| fields(pair).values_at(1, 2).map(&:first) }
    sample = fields(series[2].first)
    [pairs, PprofMessage.new(Zlib.gunzip(sample[1].first)), sample[2].first]
  end

  def name = File.basename(File.dirname(folder))
  def app(more) = "$0 = 'app of #{name}'; puts Rperf.listen; #{more}"

  it "sends what each stretch of time had, and tries again after a failure" do
    program = app("loop { Rperf.label(endpoint: 'GET /', 'odd key': 'v') { 1000.times { 1.0.to_s } } }")
    listening(program) do
      outcome = receiver(503, 200) do |url|
        url = url.sub("//", "//u:p%40@")
        rperf("push", "--to", url, "--every", "1", "--match", name, "-n", "2", "--service", "shop", "--label", "zone=b",
              "--header", "X-Scope-OrgID: team", env: { "OTEL_SERVICE_NAME" => "other" })
      end
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, ""])
      lines = outcome.stderr.lines(chomp: true)
      expect(lines).to match([%r{\Arperf: sending a profile to http://127\.0\.0\.1:\d+ every 1 s},
                              /: it takes no profile: HTTP 503 said; trying again\z/,
                              /: it takes profiles again\z/, "rperf: 2 profiles sent"])
    end
    expect(requests.size).to eq(3)
    sent = Array.new(3) { requests.pop }
    expect(sent.map(&:first).uniq).to eq(["POST /push.v1.PusherService/Push HTTP/1.1"])
    expect(sent[0][1]).to include("content-type" => "application/proto", "x-scope-orgid" => "team",
                                  "authorization" => "Basic #{["u:p@"].pack("m0")}",
                                  "user-agent" => "rperf/#{Rperf::VERSION}")
    expect(sent[0][2]).to eq(sent[1][2])
    labels, profile, id = decoded(sent[1][2])
    expect(labels).to eq("__name__" => "wall", "service_name" => "shop", "zone" => "b")
    expect(id).to match(/\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/)
    expect(profile.labels).to include({ "endpoint" => "GET /", "odd_key" => "v" })
    expect(profile.labels.flat_map(&:keys).uniq).to match_array(%w[endpoint odd_key])
    expect(profile.duration_nanos).to be_within(5e8).of(1e9)
    expect(decoded(sent[2][2])[2]).not_to eq(id)
  end

  it "counts what is lost, and ends at once when it is told to" do
    listening(app("loop { 1.0.to_s }")) do
      outcome = receiver(400) { |url| rperf("push", "--to", url, "--every", "1", "--match", name, "-n", "1") }
      expect(outcome.status.exitstatus).to eq(1)
      expect(outcome.stderr).to match(/: it refuses a profile: HTTP 400 said\nrperf: 0 profiles sent, 1 lost\n\z/)

      closed = receiver(200) { |url| url }
      pid = Process.spawn(*rperf_command("push", "--to", closed, "--every", "600", "--match", name),
                          err: in_folder("err"))
      wait_until("session") { ask(sockets.first).last["live"] }
      Process.kill(:TERM, pid)
      expect(Process.wait2(pid).last.exitstatus).to eq(1)
      said = File.read(in_folder("err"))
      expect(said).to match(/: it takes no profile: .*ECONNREFUSED.*\nrperf: 0 profiles sent, 1 lost\n\z/)
      wait_until("end of the session") { !ask(sockets.first).last["live"] }
    end
  end

  it "says in a line what can't be" do
    to = ["--to", "http://127.0.0.1:1"]
    { ["--to", "u:secret@host"] => "--to must be a URL such as https://user:password@pyroscope.example",
      [*to, "--every", "0"] => "--every must be seconds from 1 to 3600, not '0'",
      [*to, "--label", "a-b=c"] => "--label must be NAME=VALUE",
      [*to, "--label", "service_name=c"] => "--label: 'service_name' is there already",
      [*to, "--header", "secret"] => "--header must be NAME: VALUE" }.each do |arguments, line|
      outcome = rperf("push", *arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([2, "rperf: #{line}\n"])
    end
  end
end
