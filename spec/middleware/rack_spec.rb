# frozen_string_literal: true

require "rperf/rack"

RSpec.describe Rperf::RackMiddleware, vm: true do
  # The app under the middleware.
  def middleware(**options, &app) = described_class.new(app, **options)

  # A Rack environment.
  def env(path = "/", **more)
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path }.merge(more.transform_keys(&:to_s))
  end

  # The labels that an app sees.
  def labels_at(path = "/", more: {}, **options)
    seen = nil
    middleware(**options) { seen = Rperf.labels }.call(env(path, **more))
    seen
  end

  before { |example| Rperf.start(mode: :wall) unless example.metadata[:unprofiled] }

  it "has a shorter name, and another file of that name" do
    require "rperf/middleware"
    expect(Rperf::Middleware).to equal(described_class)
  end

  it "only hands the request on when profiling is off", :unprofiled do
    request = env("/users/1")
    copy = request.dup
    response = [200, {}, ["hello"]]
    expect(middleware { |received| response if received.equal?(request) }.call(request)).to equal(response)
    expect(request).to eq(copy)
  end

  it "labels the request, and nothing after it" do
    expect(labels_at("/reports/new")).to eq(endpoint: "GET /reports/new")
    expect(labels_at("/users", more: { REQUEST_METHOD: "POST" })).to eq(endpoint: "POST /users")
    expect(Rperf.labels).to eq({})
  end

  it "adds its label to those that are there" do
    Rperf.label(host: "a") do
      expect(labels_at).to eq(host: "a", endpoint: "GET /")
      expect(Rperf.labels).to eq(host: "a")
    end
  end

  it "knows the mount point of an app" do
    expect(labels_at("/\xC3\xA9".b, more: { SCRIPT_NAME: "/é" })).to eq(endpoint: "GET /é/é")
    expect(labels_at("/list", more: { SCRIPT_NAME: "/shop" })).to eq(endpoint: "GET /shop/list")
    expect(labels_at("", more: { SCRIPT_NAME: "" })).to eq(endpoint: "GET /")
  end

  {
    "/users/42" => "/users/:id",
    "/users/42.json" => "/users/:id.json",
    "/users/42/posts/7" => "/users/:id/posts/:id",
    "/posts/12-a-title" => "/posts/:id-a-title",
    "/files/invoice20240105.pdf" => "/files/invoice:id.pdf",
    "/1234567890123456789" => "/:id",
    "/jobs/550e8400-e29b-41d4-a716-446655440000" => "/jobs/:uuid",
    "/jobs/550E8400-E29B-41D4-A716-446655440000/log" => "/jobs/:uuid/log",
    "/blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709" => "/blobs/:hex",
    "/docs/507f1f77bcf86cd799439011" => "/docs/:hex",
    "/reset/V1StGXR8_Z5jdHi6B-myT" => "/reset/:token",
    "/orders/01ARZ3NDEKTSV4RRFFQ69G5FAV" => "/orders/:token",
    "/api/v2/users" => "/api/v2/users",
    "/facade/deadbeefdeadbeef" => "/facade/deadbeefdeadbeef",
    "/a-rather-long-title-of-an-article" => "/a-rather-long-title-of-an-article",
    "/caf\xC3\xA9".b => "/café",
    "/caf%C3%A9/a%20b" => "/café/a b",
    "/a%20/7%2F8" => "/a /:id/:id",
    "/\xFF/3" => "/\uFFFD/:id"
  }.each do |path, endpoint|
    it "calls #{path.inspect} #{endpoint}" do
      expect(labels_at(path)).to eq(endpoint: "GET #{endpoint}")
    end
  end

  it "gives names of their own to no more than 1,000 paths" do
    seen = []
    app = middleware { seen << Rperf.labels[:endpoint] }
    words = ("aaa".."zzz").first(1500)
    words.each { |word| app.call(env("/#{word}")) }
    app.call(env("/aaa"))
    expect(seen.uniq).to eq(words.first(1000).map { |word| "GET /#{word}" } + ["(other)"])
    expect(seen.last).to eq("GET /aaa")
  end

  describe "with a framework that routes" do
    # Says which route it has chosen, as Rails does.
    let(:routed) do
      lambda do |request, pattern|
        Rperf::RackMiddleware.const_get(:Request).routed(request) { [request["REQUEST_METHOD"], pattern] }
      end
    end

    # The labels before and after the routing.
    def labels_around(path, pattern, app: nil, **options)
      app ||= middleware(**options) do |request|
        before = Rperf.labels
        routed.call(request, pattern)
        [before, Rperf.labels]
      end
      app.call(env(path))
    end

    it "takes the route, until the end of the request" do
      before, after = labels_around("/a/title", "/a/:slug", label_key: :route)
      expect([before, after]).to eq([{ route: "GET /a/title" }, { route: "GET /a/:slug" }])
      expect(Rperf.labels).to eq({})
    end

    it "begins with the route that the path led to last time" do
      app = middleware do |request|
        before = Rperf.labels[:endpoint]
        routed.call(request, "/#{request["PATH_INFO"].count("/")}/:any")
        before
      end
      seen = %w[/a /a /b/5 /b/6 /c].map { |path| app.call(env(path)) }
      expect(seen).to eq(["GET /a", "GET /1/:any", "GET /b/:id", "GET /2/:any", "GET /c"])
      expect(app.call(env("/a", REQUEST_METHOD: "POST"))).to eq("POST /a")
    end

    it "learns the first of several routes, and takes on the last one" do
      app = middleware do |request|
        before = Rperf.labels[:endpoint]
        %w[/:slug /errors/:code].each { |pattern| routed.call(request, pattern) }
        [before, Rperf.labels[:endpoint]]
      end
      expect(Array.new(2) { app.call(env("/a")) }).to eq(
        [["GET /a", "GET /errors/:code"], ["GET /:slug", "GET /errors/:code"]]
      )
    end

    it "leaves other labels, and a label of the user's, as they are" do
      app = middleware do |request|
        Rperf.label(user: 1, endpoint: nil)
        routed.call(request, "/:x")
        Rperf.labels
      end
      expect(app.call(env("/a"))).to eq(user: 1)
      expect(labels_around("/a", "/:x", label: ->(_) { "own" })).to eq([{ endpoint: "own" }, { endpoint: "own" }])
    end

    it "heeds no route in other threads and fibers, after the request, and without one" do
      request = env("/a")
      seen = []
      app = middleware do
        seen << Rperf.labels
        Thread.new { expect(routed.call(request, "/:x") || Rperf.labels).to eq({}) }.join
        Fiber.new { expect(routed.call(request, "/:x") || Rperf.labels).to eq(endpoint: "GET /a") }.resume
        seen << Rperf.labels
      end
      app.call(request)
      [request, env("/a")].each { |late| routed.call(late, "/:x") }
      expect(Rperf.labels).to eq({})
      # Nor was anything learned from them.
      app.call(env("/a"))
      expect(seen).to eq([{ endpoint: "GET /a" }] * 4)
    end
  end

  it "takes another key, and a Proc for the value" do
    expect(labels_at("/a", label_key: :route)).to eq(route: "GET /a")
    expect(labels_at("/a", label_key: "route")).to eq(route: "GET /a")
    host = ->(environment) { environment["HTTP_HOST"] }
    expect(labels_at(label: host, label_key: :host, more: { HTTP_HOST: "b.example" })).to eq(host: "b.example")
    expect(labels_at(label: host)).to eq({})
  end

  it "refuses bad arguments" do
    expect { middleware(label_key: 5) }.to raise_error(ArgumentError, /\Alabel_key: must be .*not 5/)
    expect { middleware(label_key: "") }.to raise_error(ArgumentError, /\Alabel_key: must be /)
    expect { middleware(label: "x") }.to raise_error(ArgumentError, /\Alabel: must be .*not "x"/)
    expect { middleware(lable: nil) }.to raise_error(ArgumentError, /lable/)
  end

  it "profiles requests only in a deferred session", :unprofiled, alone: true do
    Rperf.start(defer: true)
    app = middleware { spin(0.05) }
    2.times do
      app.call(env("/work"))
      spin(0.05)
    end
    expect(weight_of(Rperf.stop, "spin") / 1e9).to be_between(0.095, 0.12)
  end

  it "profiles in a deferred session also what has no label", :unprofiled, alone: true do
    Rperf.start(defer: true)
    middleware(label: ->(_) {}) { spin(0.05) }.call(env)
    expect(weight_of(Rperf.stop, "spin") / 1e9).to be_between(0.047, 0.07)
  end

  describe "when the app fails" do
    it "passes its exceptions as they are, after one call" do
      [ArgumentError, Rperf::Error, NotImplementedError, Interrupt, SystemExit].each do |type|
        calls = 0
        error = type.new
        app = middleware { (calls += 1) && raise(error) }
        expect { app.call(env) }.to(raise_error { |raised| expect(raised).to equal(error) })
        expect([calls, Rperf.labels]).to eq([1, {}])
      end
    end

    it "passes what it throws" do
      expect(catch(:async) { middleware { throw :async, 5 }.call(env) }).to eq(5)
      expect(Rperf.labels).to eq({})
    end

    # In a process of its own: Timeout's thread stays.
    it "leaves no label behind when requests time out, at whatever moment" do
      program = write_file("app.rb", <<~RUBY)
        require "rperf/rack"
        require "timeout"
        Rperf.start(mode: :wall)
        app = Rperf::RackMiddleware.new(->(_) { sleep(rand / 1000) })
        outcomes = Array.new(500) do
          Timeout.timeout(rand / 1000) { app.call({}) && :done }
        rescue Timeout::Error
          :timeout
        ensure
          abort "left: \#{Rperf.labels}" unless Rperf.labels.empty?
        end
        puts outcomes.uniq.sort
      RUBY
      outcome = run(ruby, "-I", File.join(Commands::ROOT, "lib"), program)
      expect([outcome.stdout, outcome.stderr]).to eq(["done\ntimeout\n", ""])
    end

    it "lets no time limit pass unnoticed that comes as an exception like any other" do
      program = write_file("app.rb", <<~RUBY)
        require "rperf/rack"
        require "timeout"
        Slow = Class.new(StandardError)
        Rperf.start(mode: :wall)
        app = Rperf::RackMiddleware.new(->(_) { loop { Thread.pass } })
        outcomes = Array.new(300) do
          Timeout.timeout(rand / 10_000, Slow) { app.call({ "PATH_INFO" => "/" }) }
        rescue Slow
          :limited
        ensure
          abort "left: \#{Rperf.labels}" unless Rperf.labels.empty?
        end
        puts outcomes.tally
      RUBY
      outcome = run(ruby, "-I", File.join(Commands::ROOT, "lib"), program)
      expect([outcome.stdout, outcome.stderr]).to eq(["{limited: 300}\n", ""])
    end

    it "leaves no label behind when the thread is killed, at whatever moment" do
      app = middleware { sleep(rand / 1000) }
      left = Array.new(300) do
        labels = nil
        thread = Thread.new do
          loop { app.call(env) }
        ensure
          labels = Rperf.labels
        end
        sleep(rand / 1000)
        thread.kill.join
        labels
      end
      # A thread that was killed before it began has seen none.
      expect(left.compact.uniq).to eq([{}])
      expect(left.compact.size).to be > 100
    end
  end

  describe "when rperf fails" do
    # Before the app is called, or after it, where something can fail.
    def break_sections(after: false)
      at_once, broken = after ? %i[leave_at_once leave_request] : %i[enter_at_once enter_request]
      allow(Rperf.const_get(:Native)).to receive(:begin_request).and_return(nil)
      allow(Rperf.const_get(:Native)).to receive(at_once).and_return(false)
      allow(Rperf.const_get(:Native)).to receive(broken).and_wrap_original do |step, *arguments|
        step.call(*arguments)
        raise "out of order"
      end
    end

    # What is said about it; once per process, so an earlier example must not have been the one.
    def messages
      Rperf.const_get(:Work).instance_variable_set(:@complained, nil)
      write_file("stderr", "")
      original = STDERR.dup
      STDERR.reopen(path_to("stderr"))
      yield
      File.read(path_to("stderr"))
    ensure
      STDERR.reopen(original)
    end

    it "lets the request go on, once, and says so once" do
      [false, true].each do |after|
        break_sections(after:)
        calls = 0
        app = middleware { [200, {}, [calls += 1]] }
        said = messages { 2.times { |turn| expect(app.call(env)).to eq([200, {}, [turn + 1]]) } }
        expect(said).to match(/\Arperf: .*couldn't be labelled.*out of order \(RuntimeError\)\n\z/)
      end
    end

    %i[enter_request leave_request].each do |broken|
      it "lets the request go on if a section fails in #{broken}", :unprofiled do
        Rperf.start(mode: :wall, defer: true)
        allow(Rperf.const_get(:Native)).to receive(broken).and_wrap_original do |step, *arguments|
          step.call(*arguments)
          raise "out of order"
        end
        calls = 0
        environment = env("/users/7")
        said = messages do
          app = middleware { [200, {}, [calls += 1, Rperf.labels]] }
          expect(app.call(environment)).to eq([200, {}, [1, { endpoint: "GET /users/:id" }]])
        end
        expect(said).to match(/\Arperf: .*couldn't be labelled.*out of order \(RuntimeError\)\n\z/)
        expect([Rperf.labels, environment.fetch("rperf.request").here?]).to eq([{}, false])
      end
    end

    it "still passes the app's exceptions, after one call" do
      break_sections
      calls = 0
      app = middleware { (calls += 1) && raise(KeyError, "the app's") }
      messages do
        expect { app.call(env) }.to raise_error(KeyError, "the app's") { |error| expect(error.cause).to be_nil }
      end
      expect(calls).to eq(1)
    end

    it "lets the request go on if the Proc or the label's value fails" do
      value = Object.new.tap { |object| def object.to_s = raise("no text") }
      [->(_) { raise "no label" }, ->(_) { value }, -> { 1 }].each do |label|
        said = messages { expect(middleware(label:) { Rperf.labels }.call(env)).to eq({}) }
        expect(said.lines.size).to eq(1)
      end
    end

    it "lets the request go on if the environment is not as it should be" do
      messages do
        expect(middleware { Rperf.labels }.call({}.freeze)).to eq({})
        expect(middleware { Rperf.labels }.call({})).to eq(endpoint: " /")
        expect(middleware { Rperf.labels }.call(nil)).to eq({})
        strict = Hash.new { |_, key| raise KeyError, key }
        expect(middleware { Rperf.labels }.call(strict)).to eq({})
        odd = Class.new(Hash).new.merge!(env(:"/users/1"))
        expect(middleware { Rperf.labels }.call(odd)).to eq(endpoint: "GET /users/:id")
        expect(middleware { Rperf.labels }.call(env(:"/users/1"))).to eq(endpoint: "GET /users/:id")
      end
    end

    it "lets the request go on without a stderr" do
      program = write_file("app.rb", <<~RUBY)
        require "rperf/rack"
        Rperf.start
        STDERR.close
        app = Rperf::RackMiddleware.new(->(_) { "served" }, label: ->(_) { raise "no label" })
        puts app.call({})
      RUBY
      expect(run(ruby, "-I", File.join(Commands::ROOT, "lib"), program).stdout).to eq("served\n")
    end
  end

  describe "with what servers and apps do besides" do
    it "hands on a body that is streamed, untouched and without a label" do
      labels = nil
      body = lambda do |stream|
        labels = Rperf.labels
        stream << "chunk"
      end
      _, _, streamed = middleware { [200, {}, body] }.call(env)
      expect(streamed).to equal(body)
      expect(streamed.call(+"")).to eq("chunk")
      expect(labels).to eq({})
    end

    it "hands on the server's hijack, and the app's headers" do
      socket = Object.new
      hijack = -> { socket }
      taken = nil
      headers = { "rack.hijack" => ->(io) { io } }.freeze
      response = [200, headers, []].freeze
      app = middleware do |request|
        taken = request["rack.hijack"].call
        response
      end
      expect(app.call(env("/", "rack.hijack": hijack))).to equal(response)
      expect(taken).to equal(socket)
    end

    it "can be there twice" do
      inner = middleware(label_key: :inner) { Rperf.labels }
      outer = described_class.new(->(request) { [inner.call(request), Rperf.labels] })
      expect(outer.call(env("/a"))).to eq([{ endpoint: "GET /a", inner: "GET /a" }, { endpoint: "GET /a" }])
      expect(Rperf.labels).to eq({})
    end

    it "keeps requests of several threads and fibers apart" do
      app = middleware do |request|
        seen = Array.new(20) { sleep(0.0005) && Rperf.labels[:endpoint] }
        [*seen.uniq, request["PATH_INFO"]]
      end
      threads = Array.new(8) { |number| Thread.new { app.call(env("/of/t#{number}")) } }
      threads.map(&:value).each { |label, path| expect(label).to eq("GET #{path}") }

      waiting = middleware { Fiber.yield && Rperf.labels }
      fibers = %w[a b].map { |name| Fiber.new { waiting.call(env("/#{name}")) } }
      fibers.each(&:resume)
      expect(Rperf.labels).to eq({})
      expect(fibers.map { |fiber| fiber.resume(true) }).to eq([{ endpoint: "GET /a" }, { endpoint: "GET /b" }])
    end

    it "labels a request in one session, though it began in another or in none", :unprofiled do
      seen = []
      app = middleware do
        Rperf.stop if Rperf.running?
        Rperf.start
        seen << Rperf.labels
      end
      2.times { app.call(env) }
      expect(seen).to eq([{}, {}])
      expect(Rperf.labels).to eq({})
    end
  end
end
