# frozen_string_literal: true

require "socket"
require "zlib"
require "rperf/live/push"
require_relative "../../bench/support/protobuf"

# `rperf push`, to servers of ours that say what they were sent.
RSpec.describe "rperf push", if: RUBY_PLATFORM.include?("linux") do
  include Ports
  include Bench::Protobuf

  # A request that came: its first line, headers and body.
  let(:requests) { Queue.new }

  # Answers each request with the next of these statuses (and headers, and a body), and the last one again and again;
  # yields the URL.
  def receiver(*answers)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { take(server.accept, *(answers.size > 1 ? answers.shift : answers.first)) } }
    yield "http://127.0.0.1:#{server.addr[1]}"
  ensure
    thread&.kill&.join
    server&.close
  end

  def take(client, status, more = [], body = "said")
    line = client.gets("\r\n", chomp: true)
    headers = client.each_line("\r\n", chomp: true).take_while { |header| !header.empty? }
    headers = headers.to_h { |header| header.partition(": ").values_at(0, 2) }.transform_keys(&:downcase)
    length = headers["content-length"] or return # Whoever sent it was killed.
    requests << [line, headers, client.read(length.to_i), now]
    head = ["HTTP/1.1 #{status} x", "Content-Length: #{body.bytesize}", "Connection: close", *more].join("\r\n")
    client.write("#{head}\r\n\r\n#{body}")
  rescue SystemCallError
    nil # The same.
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

  def name = File.basename(File.dirname(directory))
  def app(more) = "$0 = 'app of #{name}'; puts Rperf.listen; #{more}"

  it "ends after -n profiles, also if the server takes none" do
    listening(app("loop { sleep 0.01 }")) do
      outcome = receiver([503, ["Retry-After: 0"]]) do |url|
        rperf("push", "--to", url, "--every", "1", "--match", name, "-n", "1", limit: 30)
      end
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /; trying again\n.*0 profiles sent, 1 lost\n\z/])
      expect(requests.size).to be_between(3, 4)
    end
  end

  it "says where a server leads to that has moved" do
    listening(app("loop { sleep 0.01 }")) do
      outcome = receiver([301, ["Location: https://new.example/push"]]) do |url|
        rperf("push", "--to", url, "--every", "1", "--match", name, "-n", "1", limit: 30)
      end
      expect(outcome.stderr).to match(%r{: it refuses a profile: HTTP 301 leads to https://new\.example/push$})
    end
  end

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
      expect(lines).to match([/the password in this command line/,
                              %r{\Arperf: sending a profile to http://127\.0\.0\.1:\d+ every 1 s},
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
    expect(profile.duration_nanos).to be_between(9e8, 1e10)
    expect(decoded(sent[2][2])[2]).not_to eq(id)
  end

  it "sends ops as frames" do
    listening(app("loop { Rperf.op('SELECT 4711', kind: :sql) { sleep 0.01 } }")) do
      outcome = receiver(200) do |url|
        rperf("push", "--to", url, "--every", "1", "--match", name, "-n", "1", "--measure", "ops")
      end
      expect([outcome.status.exitstatus, outcome.stderr]).to match([0, /1 profile sent/])
      _, profile, = decoded(requests.pop[2])
      expect(profile.function_names).to include("[SQL] SELECT ?")
    end
  end

  # The texts by index and the resource's attributes of an ExportProfilesServiceRequest: spec of crates/rperf-format has
  # the rest.
  def decoded_otlp(body)
    request = fields(Zlib.gunzip(body))
    resource = fields(fields(request.fetch(1).first).fetch(1).first)
    attributes = resource.fetch(1).to_h do |pair|
      key, value = fields(pair).values_at(1, 2).map(&:first)
      [key, fields(value).values.first.first]
    end
    [fields(request.fetch(2).first).fetch(5), attributes]
  end

  it "sends to a collector of OpenTelemetry, comes again when that says, and tells what it leaves out" do
    partial = "\x0A\x09\x08\x01\x12\x05no: x".b
    listening(app("loop { Rperf.label(endpoint: 'GET /') { 1000.times { 1.0.to_s } } }")) do |program|
      outcome = receiver([503, ["Retry-After: 2"]], [200, [], partial], [500]) do |url|
        rperf("push", "--otlp", url, "--every", "1", "--match", name, "-n", "2", "--service", "shop", "--label",
              "deployment.environment.name=test")
      end
      expect(outcome.stderr.lines(chomp: true))
        .to match([/\Arperf: sending a profile to /, /: it takes no profile: HTTP 503 said; trying again\z/,
                   /: it takes profiles again\z/, /: it refuses a part of a profile \(1 of its profiles\): no: x\z/,
                   /: it refuses a profile: HTTP 500 said\z/, "rperf: 1 profile sent, 1 of them in part, 1 lost"])
      expect(outcome.status.exitstatus).to eq(1)
      sent = Array.new(3) { requests.pop }
      expect(sent.map(&:first).uniq).to eq(["POST /v1development/profiles HTTP/1.1"])
      expect(sent[0][1]).to include("content-type" => "application/x-protobuf", "content-encoding" => "gzip",
                                    "user-agent" => "rperf/#{Rperf::VERSION} opentelemetry-proto/1.10")
      expect([sent[0][2] == sent[1][2], sent[1][3] - sent[0][3]]).to match([true, be_between(1.9, 30)])
      texts, attributes = decoded_otlp(sent[1][2])
      expect(texts).to include("", "Float#to_s", "endpoint", "wall")
      expect(attributes).to include("service.name" => "shop", "deployment.environment.name" => "test",
                                    "process.pid" => program.pid, "process.title" => "app of #{name}")
    end
  end

  def labelled?(body) = decoded(body)[1].labels.include?({ "endpoint" => "GET /" })

  # A program that pushes its own profile, and forks a child that runs as long.
  def pushing(arguments)
    app('$0 = "odd \xFF"; ' \
        "Rperf.push(#{arguments}); fork { loop { 1.to_s } }; loop { Rperf.label(endpoint: 'GET /') { 1.0.to_s } }")
  end

  it "is done by a program itself, and by its forked children", vm: true do
    receiver([503], [200]) do |url|
      arguments = "to: #{"#{url.sub("//", "//u:p@")}/".dump}, every: 1, service: 'shop', labels: { zone: 'b' }, " \
                  "headers: { 'X-Scope-OrgID' => 'team' }, frequency: 200"
      listening(pushing(arguments), err: path_to("err")) do
        sent = []
        wait_until("profiles of both, and the first one again") do
          sent << requests.pop(timeout: 30)
          bodies = sent.map { |request| request[2] }
          bodies.uniq.size < bodies.size && bodies.map { |body| labelled?(body) }.uniq.size == 2
        end
        wait_until("second line") { File.read(path_to("err")).lines.size > 1 }
        expect(sent).to all(match(["POST /push.v1.PusherService/Push HTTP/1.1", include("x-scope-orgid" => "team"),
                                   String, Float]))
        found = sent.map { |request| decoded(request[2]) }
        expect(found.map(&:first)).to all(include("service_name" => "shop", "zone" => "b"))
        expect(found.map { |part| part[1].duration_nanos }).to all(be_between(9e8, 1e10))
      end
      expect(File.read(path_to("err")).lines)
        .to match([/\Arperf: #{url}: it takes no profile: HTTP 503 said\n/, /: it takes profiles again\n/])
    end
  end

  it "never keeps a program from its end, whatever its server does", vm: true do
    silent = TCPServer.new("127.0.0.1", 0)
    url = "http://127.0.0.1:#{silent.addr[1]}"
    # Threads have the mask of the one that made them. A child that soon ends begins no session, of which there would be
    # a second thread.
    code = <<~RUBY
      masked = ->(&block) { Thread.handle_interrupt(Object => :never, &block) }
      masked.call { Rperf.push(otlp: #{url.dump}, every: 1) }
      masked.call { fork { sleep 0.3; puts Thread.list.filter_map(&:name).join(", "); sleep 1.2 } }
      sleep 0.02 until File.exist?("go")
      puts Process.wait2.last.exitstatus
      fork { exit }; Process.wait; (Thread.list - [Thread.current]).each(&:join)
    RUBY
    began = nil
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code) do
      expect(silent.wait_readable(20)).not_to be_nil
      began = now
      write_file("go", "")
    end
    # It waits for an answer of the server for 10 s.
    expect([outcome.status.exitstatus, outcome.stderr, now - began]).to match([0, "", be < 9])
    expect(outcome.stdout).to eq("rperf push\n0\n")
  ensure
    silent&.close
  end

  let(:post) { Rperf.const_get(:Web)::Post }

  it "counts what is lost inside of a program" do
    push_class = Rperf.const_get(:Push)
    destination = Rperf.const_get(:NativePush).to(false, "http://a", nil, [], [])
    destination.define_singleton_method(:body) { |*| "" }
    push = push_class.new(push_class::Plan.new(destination, 1.0, ""))
    clock = 0
    allow(push).to receive(:profile).and_return("")
    allow(push).to receive(:now) { clock }
    lines = []
    allow(Rperf.const_get(:Message)).to receive(:say) { |line| lines << line }
    later, refused, taken = [503, 400, 200].map { |status| [status, "said", "", 0.0] }
    answers = [*[later] * 5, *[taken] * 4, refused, taken]
    allow(post).to receive(:call) { answers.shift }
    8.times do
      clock += 1000
      push.send(:step)
    end
    expect(lines).to eq(["http://a: it takes no profile: HTTP 503 said",
                         "http://a: it takes profiles again (2 were lost)",
                         "http://a: it refuses a profile: HTTP 400 said",
                         "http://a: it takes profiles again (1 was lost)"])
  end

  it "says once why there is no profile" do
    push_class = Rperf.const_get(:Push)
    destination = Rperf.const_get(:NativePush).to(false, "http://a", nil, [], [])
    push = push_class.new(push_class::Plan.new(destination, 1.0, ""))
    answer = Struct.new(:status, :body).new(409, JSON.generate(error: "the program's session traces calls"))
    allow(Rperf.const_get(:Port)).to receive(:begin)
    allow(Rperf.const_get(:OwnPort)).to receive(:ask).and_return(answer, answer, nil, nil)
    allow(push).to receive(:sleep)
    expect { 4.times { push.send(:step) } }.to output(<<~TEXT).to_stderr_from_any_process
      rperf: no profile: the program's session traces calls
      rperf: no profile: Ruby's VM doesn't answer
    TEXT
    expect(push).to have_received(:sleep).exactly(4).times
  end

  it "waits for no server without end, reaches those by IPv6, and keeps secrets to itself", vm: true do
    silent = TCPServer.new("127.0.0.1", 0)
    stub_const("Rperf::Web::Post::PIECE", 0.2)
    expect(post.call("https://127.0.0.1:#{silent.addr[1]}", [], "", open: nil)).to match([0, /timeout/i, "", -1.0])
    expect(post.call("http://u:secret[@a", [], "")[1]).to eq("it can't be sent (URI::InvalidURIError)")
    expect(post.call("http://127.0.0.1:1", [%W[a sec\nret]], "").inspect).not_to include("sec")
    # No answer, but a connection.
    begin
      sixth = TCPServer.new("::1", 0)
    rescue SystemCallError
      next # The machine has no IPv6.
    end
    post.call("http://[::1]:#{sixth.addr[1]}", [], "")
    expect(sixth.accept.gets).to start_with("POST / ")
  ensure
    [silent, sixth].compact.each(&:close)
  end

  it "counts what is lost, and ends at once when it is told to" do
    listening(app("loop { 1.0.to_s }")) do
      outcome = receiver(400) { |url| rperf("push", "--to", url, "--every", "1", "--match", name, "-n", "1") }
      expect(outcome.status.exitstatus).to eq(1)
      expect(outcome.stderr).to match(/: it refuses a profile: HTTP 400 said\nrperf: 0 profiles sent, 1 lost\n\z/)

      closed = receiver(200) { |url| url }
      pid = Process.spawn(*rperf_command("push", "--to", closed, "--every", "600", "--match", name),
                          err: path_to("err"))
      wait_until("session") { ask(sockets.first).last["live"] }
      Process.kill(:TERM, pid)
      expect(Process.wait2(pid).last.exitstatus).to eq(1)
      said = File.read(path_to("err"))
      expect(said).to match(/: it takes no profile: .*ECONNREFUSED.*\nrperf: 0 profiles sent, 1 lost\n\z/)
      wait_until("end of the session") { !ask(sockets.first).last["live"] }
    end
  end

  # The Rubies that `rperf push` has started, of this process.
  def posters(pid)
    children = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)
    children.select { |child| File.read("/proc/#{child}/cmdline").include?("web/poster.rb") }
  end

  it "has a Ruby that sends, which no key reaches, and which is started again if it ends" do
    listening(app("loop { 1.0.to_s }")) do
      receiver(200) do |url|
        command = rperf_command("push", "--to", url, "--every", Commands::SLOWNESS.to_s, "--match", name)
        env = clean_environment.merge("RUBYOPT" => "-W0", "RPERF_MODE" => "cpu")
        pid = Process.spawn(env, *command, err: path_to("err"), pgroup: true)
        requests.pop(timeout: 30 * Commands::SLOWNESS)
        poster = posters(pid).fetch(0)
        expect(Process.getpgid(poster)).to eq(poster)
        expect(File.read("/proc/#{poster}/environ")).not_to match(/RUBYOPT|RPERF_/)
        Process.kill(:KILL, poster)
        wait_until("word of it") { File.read(path_to("err")).include?("has ended") }
        2.times { expect(requests.pop(timeout: 30 * Commands::SLOWNESS)).not_to be_nil }
        Process.kill(:INT, -pid)
        expect(Process.wait2(pid).last.exitstatus).to eq(0)
      end
      expect(File.read(path_to("err")).lines)
        .to match([/sending a profile/, /: it takes no profile: the Ruby that sends profiles \(.*\) has ended; trying/,
                   /takes profiles again/, /\Arperf: \d+ profiles sent\n/])
    end
  end

  it "leaves no Ruby behind, however it ends" do
    silent = TCPServer.new("127.0.0.1", 0)
    listening(app("loop { 1.0.to_s }")) do
      command = rperf_command("push", "--to", "http://127.0.0.1:#{silent.addr[1]}", "--every", "1", "--match", name)
      pid = Process.spawn(clean_environment, *command, err: File::NULL)
      # It waits for an answer.
      expect(silent.wait_readable(30)).not_to be_nil
      poster = posters(pid).fetch(0)
      Process.kill(:KILL, pid)
      Process.wait(pid)
      wait_until("end of the Ruby that sends") { !File.exist?("/proc/#{poster}/cmdline") }
    end
  ensure
    silent&.close
  end

  it "says in a line if there is no Ruby to send with", emulated: false do
    executable, = installed = [File.join(Commands::ROOT, "lib/rperf/bin/rperf-command"), "--started-by-ruby"]
    push = ["push", "--to", "http://127.0.0.1:1"]
    outcome = run(*installed, "/no/ruby", File.join(Commands::ROOT, "lib"), *push)
    expect([outcome.status.exitstatus, outcome.stderr])
      .to eq([1, "rperf: profiles are sent by Ruby, and /no/ruby can't be used: No such file or directory\n"])
    outcome = run(executable, *push, env: { "PATH" => "" })
    expect(outcome.stderr).to match(/\Arperf: profiles are sent by Ruby, and ruby can't be used: .*\n\z/)
  end

  it "says in a line what can't be" do
    to = ["--to", "http://127.0.0.1:1"]
    pyroscope = "a name that Pyroscope takes: letters, digits and _, and no digit at its beginning"
    encoding = "--to must have %XX for a character that URLs don't have there, such as %2F for / in a password"
    { ["--to", "u:secret@host"] => "--to must be a URL such as https://user:password@profiles.example",
      ["--otlp", "host:4318"] => "--otlp must be a URL such as https://user:password@profiles.example",
      ["--to", "http://u:sec/ret@host"] => encoding,
      [*to, "--every", "0"] => "--every must be seconds from 1 to 3600, not '0'",
      [*to, "--label", "x"] => "--label must be NAME=VALUE",
      [*to, "--label", "x.y=1"] => "--label must have #{pyroscope}",
      [*to, "--label", "x="] => "--label must have a value, without control characters",
      ["--otlp", to[1], "--label", "x\ny=1"] => "--label must have a name without control characters",
      [*to, "--header", "a b: c"] => "--header must have a name of letters, digits, - and _",
      [*to, "--label", "service_name=c"] => "--label: 'service_name' is there already",
      [*to, "--header", "secret"] => "--header must be NAME: VALUE" }.each do |arguments, line|
      outcome = rperf("push", *arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([2, "rperf: #{line}\n"])
    end
    expect(rperf("push").status.exitstatus).to eq(2)
    expect(rperf("push", *to, "--otlp", "http://127.0.0.1:1").status.exitstatus).to eq(2)
    { {} => "push: needs either to: or otlp:", { to: 1 } => "to: must be a URL (a String), not 1",
      { otlp: "secret@x" } => "otlp must be a URL such as https://user:password@profiles.example",
      { to: "http://a", every: 0 } => "every: must be a number from 1 to 3600, not 0",
      { to: "http://a", frequency: 1.5 } => "frequency: must be an Integer from 1 to 1000, not 1.5",
      { to: "http://a", mode: "wall" } => "mode: must be :wall or :cpu, not \"wall\"",
      { to: "http://a", measure: %i[ops heap] } =>
        "measure: must be :\"alloc=sampled\", :ops or an Array of them or nil (nothing more), not [:ops, :heap]",
      { to: "http://a", labels: { "x.y": 1 } } => "labels must have #{pyroscope}",
      { to: "http://a", labels: { "a=b" => 1 } } => "labels: a name can't have =",
      { to: "http://a", headers: 1 } => "headers: must be a Hash, not 1" }.each do |arguments, line|
      expect { Rperf.push(**arguments) }.to raise_error(ArgumentError, line)
    end
  end
end
