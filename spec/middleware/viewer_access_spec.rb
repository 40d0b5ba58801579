# frozen_string_literal: true

require "rperf/rack"
require "rperf/viewer"

# Who may see the viewer, and change anything.
RSpec.describe Rperf::Viewer, skip: Servers.missing("rack") do
  include ViewerRequests

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

  describe "other sites' pages" do
    before { Rperf.start(mode: :wall) }

    it "can't change anything" do
      id = take(http)
      [{}, { "HTTP_X_RPERF" => "" }, { "HTTP_X_RPERF" => "1", "HTTP_SEC_FETCH_SITE" => "cross-site" },
       { "HTTP_X_RPERF" => "1", "HTTP_SEC_FETCH_SITE" => "same-site" }].each do |headers|
        expect(http.post("/rperf/snapshots", local.merge(headers)).status).to eq(403)
        expect(http.delete("/rperf/snapshots/#{id}", local.merge(headers)).status).to eq(403)
      end
      expect(list(http)[:snapshots].size).to eq(1)
      expect(http.post("/rperf/snapshots", ours.merge("HTTP_SEC_FETCH_SITE" => "same-origin")).status).to eq(201)
    end

    it "can't read anything, but link to the page" do
      id = take(http)
      foreign = local.merge("HTTP_SEC_FETCH_SITE" => "cross-site")
      ["snapshots.json", "snapshots/#{id}.rpv", "snapshots/#{id}.pb.gz", "diff/#{id}/#{id}.rpv"].each do |path|
        expect(http.get("/rperf/#{path}", foreign).status).to eq(403)
        expect(http.get("/rperf/#{path}", local.merge("HTTP_SEC_FETCH_SITE" => "none")).status).to eq(200)
      end
      expect(http.get("/rperf/", foreign).status).to eq(200)
    end
  end

  describe "with auth:" do
    it "asks it, of the viewer's requests only" do
      in_environment({})
      seen = []
      http = client(viewer(auth: ->(env) { (seen << env["PATH_INFO"]) && env["HTTP_X_KEY"] == "secret" }))
      expect(http.get("/else").status).to eq(200)
      expect(http.get("/rperf/", "HTTP_X_KEY" => "secret").status).to eq(200)
      %w[/rperf/ /rperf/snapshots.json /rperf/nothing].each do |path|
        expect(http.get(path)).to have_attributes(status: 403,
                                                  body: "You may not see this: auth: of Rperf::Viewer says no.\n")
      end
      expect(http.head("/rperf/")).to have_attributes(status: 403, body: "")
      expect(seen).to eq(%w[/rperf/ /rperf/ /rperf/snapshots.json /rperf/nothing /rperf/])
    end

    it "takes nil for no, and anything else for yes" do
      { nil => 403, false => 403, true => 200, 0 => 200 }.each do |result, status|
        expect(client(viewer(auth: ->(_) { result })).get("/rperf/").status).to eq(status)
      end
    end

    it "serves nothing if that raises, and lets the exception pass" do
      app = viewer(auth: ->(_) { raise KeyError, "no session" })
      expect { app.call(Rack::MockRequest.env_for("/rperf/")) }.to raise_error(KeyError, "no session")
      expect(app.call(Rack::MockRequest.env_for("/"))[0]).to eq(200)
    end

    it "heeds it in development, too" do
      expect(client(viewer(auth: ->(_) { false })).get("/rperf/", local).status).to eq(403)
      expect(client(viewer(auth: ->(_) { true })).get("/rperf/", "HTTP_HOST" => "shop.example").status).to eq(200)
    end
  end

  describe "without auth:" do
    message = "outside of development (RAILS_ENV, RACK_ENV, APP_ENV) Rperf::Viewer needs auth:, " \
              "which says who may see it"

    [
      {}, { "RACK_ENV" => "" }, { "RACK_ENV" => "production" }, { "RAILS_ENV" => "test" },
      { "RACK_ENV" => "Development" },
      { "RACK_ENV" => "development", "RAILS_ENV" => "production" },
      { "RACK_ENV" => "development", "APP_ENV" => "production" }
    ].each do |variables|
      it "is closed where the environment is #{variables}, and says so once" do
        in_environment(variables)
        app = nil
        expect(stderr_of { app = viewer(path: "/prof") }).to eq("rperf: the viewer at /prof/ is closed: #{message}\n")
        http = client(app)
        expect(stderr_of { http.get("/prof/") }).to eq("")
        expect(http.get("/prof/", local)).to have_attributes(status: 403, body: "The viewer is closed: #{message}.\n")
        expect(http.post("/prof/snapshots", ours).status).to eq(403)
        expect(http.get("/orders")).to have_attributes(status: 200, body: "/orders")
        # The app itself may take snapshots.
        Rperf.start(mode: :wall)
        expect(app.take_snapshot!).to be_a(String)
      end
    end

    [
      { "RACK_ENV" => "development" }, { "RAILS_ENV" => "development" },
      { "APP_ENV" => "development", "RACK_ENV" => "" }, { "RAILS_ENV" => "development", "RACK_ENV" => "development" }
    ].each do |variables|
      it "is open where the environment is #{variables}" do
        in_environment(variables)
        app = nil
        expect(stderr_of { app = viewer }).to eq("")
        expect(client(app).get("/rperf/", local).status).to eq(200)
      end
    end

    {
      true => %w[localhost localhost:3000 LOCALHOST shop.localhost my-app.test:80 127.0.0.1 127.9.9.9:1 10.1.2.3
                 192.168.0.7:3000 172.17.0.1 0.0.0.0:9292 [::1]:3000 [::1] [fe80::1] [fd00::2]:80 [::]:80],
      false => ["example.org", "evil.example:3000", "localhost.evil.example", "test", "8.8.8.8", "[2001:db8::1]",
                "127.0.0.1.evil.example", "", "localhost:3000\nx", "localhost@evil.example", "[::1]evil", "1.2.3",
                ".test", "\xFF"]
    }.each do |open, hosts|
      hosts.each do |host|
        it "#{open ? "answers" : "doesn't answer"} to #{host.inspect}" do
          env = Rack::MockRequest.env_for("/rperf/").merge("HTTP_HOST" => host)
          expect(viewer.call(env)[0]).to eq(open ? 200 : 403)
        end
      end
    end

    {
      "HTTP_X_FORWARDED_HOST" => { "shop.example" => 403, "localhost, shop.example" => 403, "localhost:80" => 200,
                                   "" => 200 },
      "REMOTE_ADDR" => { "8.8.8.8" => 403, "2001:db8::1" => 403, "192.168.1.7" => 200, "::1" => 200, "fe80::1:2" => 200,
                         "::ffff:127.0.0.1" => 200, "::ffff:8.8.8.8" => 403, "" => 200, "x" => 403 },
      "HTTP_X_FORWARDED_FOR" => { "8.8.8.8" => 403, "127.0.0.1, 8.8.8.8" => 403, "unknown" => 403, "10.0.0.1:99" => 200,
                                  "[::1]:80,127.0.0.1" => 200, "" => 200 }
    }.each do |name, values|
      values.each do |value, status|
        it "is answered with #{status} if #{name} is #{value.inspect}" do
          expect(http.get("/rperf/", local.merge(name => value)).status).to eq(status)
        end
      end
    end
  end
end
