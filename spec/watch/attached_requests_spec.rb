# frozen_string_literal: true

# Requests and ops of a program that runs already, which has rperf's middleware.
RSpec.describe "rperf attach, of requests and ops", vm: true do
  include Ports

  # Serves requests all the time, of which one in fifty is slow, after `code`.
  def serving(code = "", &)
    listening(<<~RUBY, &)
      require "rperf/rack"
      SELECT = "SELECT name FROM users WHERE id = 17"
      APP = Rperf::RackMiddleware.new(lambda { |env|
        Rperf.op(SELECT, kind: :sql) { sleep(env["number"] % 50 == 49 ? 0.02 : 0.0005) }
        [200, {}, []]
      })
      #{code}
      def get(number) = APP.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/users", "number" => number })
      200.times { |number| get(number) }
      puts Rperf.listen
      (0..).each { |number| get(number) }
    RUBY
  end

  def attach(program, *arguments)
    rperf("attach", program.pid.to_s, "--duration", "2", "-o", "x.pb.gz", *arguments)
  end

  def profile = Rperf.load(path_to("x.pb.gz"))

  def ops = profile.ops[:ops].to_h { |op| [op[:name], op[:calls]] }

  def comments = PprofMessage.read(path_to("x.pb.gz")).comments.join("\n")

  statement = "[SQL] SELECT name FROM users WHERE id = ?"

  it "gives 'rperf why' what it tells of" do
    serving do |program|
      outcome = attach(program, "--measure", "requests,blame,ops")
      # A busy machine has a line of its own: that the program doesn't answer at once.
      expect([outcome.status.exitstatus, outcome.messages.last]).to match([0, start_with("rperf: wrote x.pb.gz")])
      expect(outcome.messages.grep(/lacks|has no/)).to eq([])
      why = JSON.parse(rperf("why", "x.pb.gz", "/users", "--json").stdout, symbolize_names: true)
      # A session can begin or end between a request's begin or end and that of its op.
      expect(why[:requests]).to be_within(2).of(ops.fetch(statement))
      expect(why[:requests]).to be > 100
      expect(rperf("why", "x.pb.gz", "/users").stdout).to include(statement)
    end
  end

  it "says so if there is no middleware" do
    listening("puts Rperf.listen; loop { 1000.times { |i| i.to_s } }") do |program|
      expect(attach(program, "--measure", "requests").messages).to include(/has no requests: none ended meanwhile, or/)
    end
  end

  it "says so if the program's own session has none, or can't tell those of this time" do
    serving("Rperf.start(mode: :wall)") do |program|
      told = attach(program, "--measure", "requests,ops")
      expect(told.messages.grep(/lacks (requests|ops), because/).size).to eq(2)
      expect(comments).to include("missing: requests, because").and include("missing: ops, because")
    end
    serving("Rperf.start(mode: :wall, measure: %i[requests ops])") do |program|
      told = attach(program, "--measure", "requests,ops")
      expect(told.messages.grep(/lacks/)).to contain_exactly(/lacks requests, because a session ran already/)
      expect(comments).not_to include("missing: ops")
      expect(ops.fetch(statement)).to be_between(100, 5_000)
    end
  end

  it "counts the ops of its own time alone where it joins a session that measures them" do
    early = <<~RUBY
      Rperf.start(mode: :wall, measure: :ops)
      10_000.times { Rperf.op(SELECT, kind: :sql) { nil } }
    RUBY
    serving(early) do |program|
      attach(program)
      expect(ops.fetch(statement)).to be_between(100, 5_000)
    end
  end

  it "gives calls of libraries their names, each time" do
    asking = <<~RUBY
      require "net/http"
      require "socket"
      SERVER = TCPServer.new("127.0.0.1", 0)
      Thread.new do
        loop do
          client = SERVER.accept
          nil until client.gets.chomp.empty?
          client.write("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
          client.close
        end
      end
      Thread.new { loop { Net::HTTP.get_response("127.0.0.1", "/", SERVER.local_address.ip_port) && sleep(0.01) } }
    RUBY
    serving(asking) do |program|
      counts = Array.new(2) do
        expect(attach(program, "--measure", "ops").messages.grep(/lacks|has no/)).to eq([])
        ops.filter_map { |name, calls| calls if name.start_with?("[HTTP] GET 127.0.0.1") }
      end
      expect(counts).to all(match([be_between(10, 1_000)]))
    end
  end

  it "refuses words that don't go together, or that ports don't know" do
    refused = ->(*arguments) { rperf("attach", "1", *arguments).messages.first }
    expect(refused["-m", "cpu", "--measure", "requests"]).to start_with("rperf: --measure requests goes with -m wall")
    expect(refused["--measure", "gc_cost"])
      .to start_with("rperf: --measure must be alloc=sampled, blame, heap, ops, requests")
  end
end
