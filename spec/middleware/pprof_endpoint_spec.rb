# frozen_string_literal: true

require "rperf/pprof_endpoint"

RSpec.describe Rperf::PprofEndpoint, skip: Servers.missing("rack") do
  names = %w[RAILS_ENV RACK_ENV APP_ENV]

  around do |example|
    require "rack"
    saved = names.to_h { |name| [name, ENV.fetch(name, nil)] }
    ENV.update(names.to_h { |name| [name, nil] })
    example.run
  ensure
    ENV.update(saved)
  end

  # With an app that says which path it was asked for.
  def client(**)
    app = described_class.new(->(env) { [200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]] }, **)
    Rack::MockRequest.new(Rack::Lint.new(app))
  end

  # The block's output on the process's stderr.
  def stderr_of
    reader, writer = IO.pipe
    saved = STDERR.dup
    STDERR.reopen(writer)
    yield
    STDERR.reopen(saved)
    writer.close
    reader.read
  end

  def key = { "HTTP_X_KEY" => "secret" }

  let(:http) { client(auth: ->(env) { env["HTTP_X_KEY"] == "secret" }, max_seconds: 20) }

  it "is closed without auth: but in development, and says so" do
    closed = nil
    said = stderr_of { closed = client }
    expect(said).to match(%r{\Arperf: the profile endpoint at /debug/pprof/ is closed: .* needs auth:})
    expect(closed.get("/debug/pprof/profile?seconds=1")).to have_attributes(
      status: 403, body: /\AThe profile endpoint is closed: .* Rperf::PprofEndpoint needs auth:/
    )
    expect(http.get("/debug/pprof/profile")).to have_attributes(status: 403,
                                                                body: /auth: of Rperf::PprofEndpoint says no/)
    expect(http.get("/debug/pprofiles").body).to eq("/debug/pprofiles")
    ENV["RACK_ENV"] = "development"
    expect(client.get("/debug/pprof/x", "HTTP_HOST" => "evil.example").status).to eq(403)
    expect(client.get("/debug/pprof/x", "HTTP_HOST" => "localhost").status).to eq(501)
  end

  it "asks a port whose path is too long for a socket's address", if: RUBY_PLATFORM.include?("linux") do
    code = <<~'RUBY'
      Dir.mkdir(long = File.join(Dir.pwd, "x" * 120))
      Rperf.listen(directory: long)
      endpoint = Rperf::PprofEndpoint.new(auth: ->(_) { true })
      puts endpoint.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/cmdline").first
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf/pprof_endpoint", "-e", code)
    expect([outcome.stdout, outcome.stderr]).to eq(["200\n", ""])
  end

  it "refuses what it can't do" do
    { ["GET", "/heap"] => 501, ["GET", "/trace"] => 501, ["POST", "/profile?seconds=1"] => 405,
      ["GET", "/profile?seconds=21"] => 400, ["GET", "/profile?seconds=0"] => 400,
      ["GET", "/profile?seconds=1e1"] => 400,
      ["GET", "/profile?seconds=%31"] => 400 }.each do |(method, path), status|
      expect([path, http.request(method, "/debug/pprof#{path}", key).status]).to eq([path, status])
    end
    expect(http.get("/debug/pprof/profile", key.merge("HTTP_SEC_FETCH_SITE" => "cross-site")).status).to eq(403)
    ENV["RACK_ENV"] = "development"
    [{ auth: 1 }, { max_seconds: 0 }, { max_seconds: "1" }].each do |options|
      expect { client(**options) }.to raise_error(ArgumentError, /\A#{options.keys[0]}: must be /)
    end
    expect(Rack::MockRequest.new(described_class.new(auth: ->(_) { true })).get("/profile?seconds=x").status).to eq(400)
  end
end
