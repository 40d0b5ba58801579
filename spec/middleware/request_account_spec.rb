# frozen_string_literal: true

require "rperf/rack"
require "rperf/sidekiq"

# Accounts of requests and jobs.
RSpec.describe "Accounts in middleware", vm: true do
  def env(path = "/users/1", **more)
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path }.merge(more.transform_keys(&:to_s))
  end

  # An environment of a class of its own.
  let(:odd) { Class.new(Hash).new }

  def respond(environment = env, **options, &app)
    app ||= ->(_) { [200, {}, ["hello"]] }
    Rperf::RackMiddleware.new(app, **options).call(environment)
  end

  before { |example| Rperf.start(mode: :account) unless example.metadata[:off] }
  after do
    Rperf.stop
    Rperf.stop(mode: :account)
  end

  def states(account) = account.to_h.values_at(*%i[running_ns gvl_wait_ns blocked_ns gc_ns suspended_ns]).sum

  it "are in the environment while the app answers, and afterwards" do
    environment = env
    inside = nil
    respond(environment) do |received|
      sleep(0.005)
      inside = [received["rperf.account"].open?, received["rperf.account"].blocked_ns]
      [200, {}, []]
    end
    account = environment["rperf.account"]
    expect(inside).to match([true, be >= 5_000_000])
    expect([account.open?, account.name]).to eq([false, "GET /users/:id"])
    expect(states(account)).to eq(account.wall_ns)
  end

  it "aren't made if nobody has asked for them", :off do
    environment = env
    expect(respond(environment)).to eq([200, {}, ["hello"]])
    expect(environment).not_to have_key("rperf.account")
    expect(Rperf.accounts).to eq({})
  end

  it "count for their endpoint, also if the app raises, with a session beside them and without" do
    Rperf.start(mode: :wall)
    2.times { |id| respond(env("/users/#{id}")) }
    Rperf.stop
    respond(env("/users/7"))
    expect { respond(env("/users/8")) { raise "no" } }.to raise_error("no")
    respond(label: ->(_) { "tenant 7" })
    respond(label: ->(_) { "\xff" })
    respond(label: ->(_) {})
    counts = Rperf.accounts.transform_values { |it| it[:count] }
    expect(counts).to eq("GET /users/:id" => 5, "tenant 7" => 1, "\uFFFD" => 1)
  end

  it "have the name that the app gives them" do
    respond do |received|
      received["rperf.account"].name = "checkout"
      [200, {}, []]
    end
    expect(Rperf.accounts.keys).to eq(["checkout"])
  end

  it "have the name of the endpoint in whatever environment" do
    named = [{}, odd].map do |environment|
      respond(environment.merge!(env("/orders/7")))
      environment["rperf.account"].name
    end
    expect(named).to eq(["GET /orders/:id", "GET /orders/:id"])
  end

  it "are one for a request that passes the middleware twice" do
    seen = []
    inner = Rperf::RackMiddleware.new(->(received) { seen << received["rperf.account"] and [200, {}, []] })
    environment = env
    respond(environment) { |received| inner.call(received) }
    expect(seen).to eq([environment["rperf.account"]])
    expect(Rperf.accounts["GET /users/:id"][:count]).to eq(1)
  end

  it "have the route that the inner of two middlewares learns, with a session beside them and without" do
    routed = lambda do |received|
      Rperf::RackMiddleware.const_get(:Request).routed(received) { ["GET", "/posts/:slug"] }
      [200, {}, []]
    end
    app = Rperf::RackMiddleware.new(Rperf::RackMiddleware.new(routed))
    %w[/posts/a /posts/b].each { |path| app.call(env(path)) }
    Rperf.start(mode: :wall)
    %w[/posts/c /posts/d].each { |path| app.call(env(path)) }
    expect(Rperf.accounts.transform_values { |it| it[:count] }).to eq("GET /posts/:slug" => 4)
  end

  it "end with their request whatever the app does to it" do
    environment = env
    respond(environment) { |received| received.each_value(&:freeze) && [200, {}, []] }
    expect([environment["rperf.account"].open?, Rperf.accounts.keys]).to eq([false, ["GET /users/:id"]])
    # Nothing can be added to these.
    Rperf.const_get(:Work).instance_variable_set(:@complained, true)
    other = env
    answers = [*other.map { respond(other) }, respond(env.freeze)]
    expect(answers).to eq([[200, {}, ["hello"]]] * 4)
    expect(Rperf.accounts.transform_values { |it| it[:count] }).to eq("GET /users/:id" => 5)
  end

  it "are told to blocks after requests that are sections, too" do
    told = []
    Rperf.on_account { |name, account| told << [name, account.open?, Rperf.labels] if name == "GET /told" }
    Rperf.start(mode: :wall, defer: true)
    2.times { respond(env("/told")) }
    Rperf.stop
    respond(env("/told"))
    expect(told).to eq([["GET /told", false, {}]] * 3)
  end

  it "end when the thread is killed, at whatever moment" do
    [false, true].each do |defer|
      Rperf.start(mode: :wall, defer:)
      left = Array.new(200) do
        environments = []
        thread = Thread.new do
          loop do
            environments << env
            respond(environments.last) { |_| sleep(rand / 2000) and [200, {}, []] }
          end
        end
        sleep(rand / 1000)
        thread.kill.join
        environments.last(2).filter_map { |it| it["rperf.account"] }
      end
      expect(left.flatten.map(&:open?).tally).to match({ false => be > 100 })
      # No section is left in which time would count.
      Rperf.snapshot(clear: true)
      spin(0.05) if defer
      expect(Rperf.stop.top(value: "wall", limit: nil).sum { |row| row[:self] }).to eq(0) if defer
      Rperf.stop
    end
  end

  it "are told by the inner of two middlewares, if it is that one's to tell" do
    inner = Rperf::RackMiddleware.new(->(_) { sleep(0.005) and [200, {}, []] }, server_timing: ->(_) { true })
    expect(respond { |received| inner.call(received) }[1].fetch("server-timing")).to include("blocked;dur=")
  end

  {
    "t=%.3f" => 1.0, "%.6f" => 1.0, "t=%d" => 1e3, "%d" => 1e6
  }.each do |format, scale|
    it "know how long a request has waited, by #{format} in #{scale.to_i} parts of a second" do
      [{}, odd].each do |environment|
        environment.merge!(env(HTTP_X_REQUEST_START: format(format, (Time.now.to_f - 0.25) * scale)))
        respond(environment)
        expect(environment["rperf.account"].queue_ns).to be_between(245_000_000, 5_000_000_000)
      end
    end
  end

  ["", "now", "t=", "-5", "t=1e400", "99999999999", "0"].each do |header|
    it "know nothing of a wait by #{header.inspect}" do
      [{}, odd].each do |environment|
        environment.merge!(env(HTTP_X_REQUEST_START: header))
        respond(environment)
        expect(environment["rperf.account"].queue_ns).to be_nil
      end
    end
  end

  it "are in the response's header for whom the app says so, without mode: :account", :off do
    timing = ->(received) { received["REMOTE_USER"] == "admin" }
    app = ->(_) { sleep(0.005) and [200, { "server-timing" => "db;dur=3" }, []] }
    expect(respond(env, server_timing: timing, &app)[1]).to eq("server-timing" => "db;dur=3")
    headers = respond(env(REMOTE_USER: "admin"), server_timing: timing, &app)[1]
    before = /(run;dur=[\d.]+, )?(gvl;dur=[\d.]+, )?/
    after = /(gc;dur=[\d.]+, )?cpu/
    expect(headers.fetch("server-timing")).to match(/\Adb;dur=3, #{before}blocked;dur=[\d.]+, #{after}/)
    old = ->(_) { [200, { "Server-Timing" => "db;dur=3" }, []] }
    expect(respond(env(REMOTE_USER: "admin"), server_timing: timing, &old)[1].keys).to eq(["Server-Timing"])
  end

  it "are in the header of a response that is frozen, and change no response that is none", :off do
    timing = ->(_) { true }
    response = [200, {}.freeze, ["hello"].freeze].freeze
    status, headers, body = respond(server_timing: timing) { response }
    expect([status, headers.keys, body]).to eq([200, ["server-timing"], ["hello"]])
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf/rack", "-e", <<~RUBY)
      p Rperf::RackMiddleware.new(->(_) { :none }, server_timing: ->(_) { true }).call({})
      p Rperf::RackMiddleware.new(->(_) { [200, {}, []] }, server_timing: ->(_) { raise "no" }).call({})
    RUBY
    expect(outcome.stdout).to eq(":none\n[200, {}, []]\n")
    expect(outcome.stderr).to match(/\Arperf: a request or job has no account as it should: .+\n\z/)
    expect { respond(server_timing: 5) }.to raise_error(ArgumentError, /\Aserver_timing: must be nil or something/)
  end

  it "are in the context of Sidekiq's log" do
    context = {}
    sidekiq = Module.new do
      define_singleton_method(:current) { { jid: 1 } }
      define_singleton_method(:add) { |key, value| context[key] = value }
    end
    stub_const("Sidekiq::Context", sidekiq)
    job = { "class" => "Wrapper", "wrapped" => "SendEmailJob" }
    work = Rperf.const_get(:Work)
    value = Rperf::SidekiqMiddleware.new.call(nil, job, "default") do
      # As ActiveJobMiddleware, which may be there, too.
      work.account_of_job("SendEmailJob", -> { sleep(0.005) && :done })
    end
    expect(value).to eq(:done)
    expect(context.keys).to eq(%i[run_ms gvl_ms blocked_ms gc_ms cpu_ms objects])
    expect(context[:blocked_ms]).to be >= 5
    expect(Rperf.accounts["SendEmailJob"][:count]).to eq(1)
  end
end
