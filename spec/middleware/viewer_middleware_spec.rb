# frozen_string_literal: true

require "rperf/rack"
require "rperf/viewer"
require "zlib"

RSpec.describe Rperf::Viewer, skip: Servers.missing("rack") do
  include ViewerRequests

  # The header of RPV1 data, and all text in it.
  def header_and_text(response)
    bytes = Zlib.gunzip(response.body)
    length = bytes[4, 4].unpack1("V")
    [JSON.parse(bytes[8, length], symbolize_names: true), bytes[(8 + length)..]]
  end

  it "hands on what isn't below its path, as it is" do
    response = [200, {}, ["hello"]]
    seen = []
    app = viewer(->(env) { response if seen << env })
    ["/", "", "/rperfx", "/a/rperf", "/RPERF", "//rperf", "/\xFF/x"].each do |path|
      env = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path }
      copy = env.dup
      expect(app.call(env)).to equal(response)
      expect(seen.last).to equal(env)
      expect(env).to eq(copy)
    end
  end

  describe "the page" do
    asset = File.join(Commands::ROOT, "lib", "rperf", "viewer")
    page = File.read(File.join(asset, "viewer.html"))

    it "is that of rperf report, and is told where it is" do
      ["/rperf", "/rperf/", "/rperf/?a=b&c"].each do |path|
        response = http.get(path, local)
        expect(response.status).to eq(200)
        expect(response.body).to eq(page.b.sub("@RPERF_DATA@", "server:/rperf/"))
      end
    end

    it "has the policy of the asset, and headers that say the rest" do
      headers = http.get("/rperf/", local).headers
      policy = File.read(File.join(asset, "viewer.lock"))[/^csp (.*)$/, 1]
      expect(policy).to include("frame-ancestors 'none'")
      expect(headers).to include(
        "content-type" => "text/html; charset=utf-8", "content-security-policy" => policy,
        "x-content-type-options" => "nosniff", "x-frame-options" => "DENY", "referrer-policy" => "no-referrer",
        "cross-origin-opener-policy" => "same-origin", "cross-origin-resource-policy" => "same-origin",
        "cache-control" => "no-store"
      )
    end

    {
      "" => "/rperf/", "/admin" => "/admin/rperf/", "//evil.example" => "/evil.example/rperf/",
      "/a b/é\"</script>\xFF" => "/a%20b/%C3%A9%22%3C/script%3E%FF/rperf/", "/%7Eme" => "/%7Eme/rperf/"
    }.each do |script_name, base|
      it "is told #{base} below #{script_name.inspect}" do
        env = Rack::MockRequest.env_for("/", local).merge("SCRIPT_NAME" => script_name, "PATH_INFO" => "/rperf/")
        expect(viewer.call(env)[2].join[/server:[^<]*/]).to eq("server:#{base}")
      end
    end

    it "is where path: says" do
      { "/" => nil, "/a/b" => "/a/b/", "/a/b/" => "/a/b/", "" => nil }.each do |path, base|
        next expect { viewer(path:) }.to raise_error(ArgumentError, /\Apath: must not be/) unless base

        response = client(viewer(path:)).get("/a/b", local)
        expect(response.body[/server:[^<]*/]).to eq("server:#{base}")
      end
    end
  end

  it "is an app, too, where it is mounted" do
    mounted = described_class.new
    app = Rack::Builder.app do
      map("/tools/rperf") { run mounted }
      map("/old") { run Rperf::Viewer.new(nil, path: "") }
      map("/both") { run Rperf::Viewer.new(nil, path: "/rperf") }
    end
    bases = %w[/tools/rperf /tools/rperf/ /old /both/rperf].map do |path|
      client(app).get(path, local).body[/server:[^<]*/]
    end
    expect(bases).to eq(%w[server:/tools/rperf/ server:/tools/rperf/ server:/old/ server:/both/rperf/])
    expect(client(app).get("/tools/rperf/snapshots.json", local).status).to eq(200)
    expect(client(app).get("/both/", local).status).to eq(404)
  end

  describe "snapshots" do
    before { Rperf.start(mode: :wall) }

    it "are taken, listed, shown and deleted" do
      spin(0.1)
      response = http.post("/rperf/snapshots", ours)
      id = json(response).fetch(:id)
      expect([response.status, id]).to match([201, /\A#{Process.pid}-1\z/])
      sleep 0.03
      second = take(http)
      data = http.get("/rperf/snapshots/#{second}.rpv", local)
      file = http.get("/rperf/snapshots/#{second}.pb.gz", local)
      expect(list(http)).to match(
        snapshots: [include(id:, title: "snapshot 1", samples: be > 5, duration_ns: be > 20_000_000),
                    include(id: second, title: "snapshot 2", bytes: data.body.bytesize + file.body.bytesize,
                            start_ms: be_within(10_000).of(Time.now.to_f * 1000))],
        can_take: true, can_delete: true, can_save: true, process: Process.pid, notes: []
      )
      header, text = header_and_text(data)
      expect(header[:profiles]).to match([include(title: "snapshot 2", duration_ns: be > 30_000_000)])
      expect(text).to include("Kernel#sleep")
      expect(http.delete("/rperf/snapshots/#{id}", ours)).to have_attributes(status: 204, body: "")
      expect(list(http)[:snapshots].map { |snapshot| snapshot[:id] }).to eq([second])
      expect(http.delete("/rperf/snapshots/#{id}", ours).status).to eq(404)
    end

    it "are pprof files, too" do
      spin(0.1)
      id = take(http)
      response = http.get("/rperf/snapshots/#{id}.pb.gz", local)
      expect(response["content-disposition"]).to eq("attachment; filename=\"rperf-#{id}.pb.gz\"")
      File.binwrite(path_to("snapshot.pb.gz"), response.body)
      expect(weight_of(read_profile(path_to("snapshot.pb.gz")), "Profiles#spin")).to be > 15_000_000
    end

    it "are each of the time since the one before", alone: true do
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      2.times do
        spin(0.05)
        take(http)
      end
      took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
      parts = list(http)[:snapshots].map { |snapshot| snapshot[:duration_ns] }
      expect(parts).to all(be > 49_000_000)
      expect(parts.last).to be <= took - 50_000_000
      expect(Rperf.stop[:duration_ns]).to be < 40_000_000 * Commands::SLOWNESS
    end

    it "are compared, by what each second has in it" do
      spin(0.1)
      base = take(http)
      sleep 0.06
      target = take(http)
      response = http.get("/rperf/diff/#{base}/#{target}.rpv", local)
      header, text = header_and_text(response)
      expect(header[:profiles].map { |profile| profile[:title] }).to eq(["snapshot 1", "snapshot 2"])
      lengths = header[:profiles].map { |profile| profile[:duration_ns] }
      expect(header[:diff]).to match(base: 0, target: 1, normalised: "duration",
                                     scale: be_within(1e-9).of(lengths[1].fdiv(lengths[0])))
      expect(text).to include("Profiles#spin", "Kernel#sleep")
    end

    it "are sent as they are, to nobody's store" do
      id = take(http)
      response = http.get("/rperf/snapshots/#{id}.rpv?x=1", local)
      expect(response.headers).to include("content-type" => "application/octet-stream",
                                          "cache-control" => "no-store, no-transform",
                                          "content-security-policy" => "default-src 'none'; frame-ancestors 'none'")
      expect(response.headers).not_to include("content-encoding")
      deflated = client(Rack::Deflater.new(viewer.tap(&:take_snapshot!)))
      id = list(deflated)[:snapshots].last[:id]
      response = deflated.get("/rperf/snapshots/#{id}.rpv", local.merge("HTTP_ACCEPT_ENCODING" => "gzip"))
      expect(header_and_text(response).first[:version]).to eq(1)
    end

    it "are in bounds: the oldest are dropped, and the page says so" do
      http = client(viewer(max_snapshots: 2))
      ids = Array.new(3) { take(http) }
      expect(list(http)[:snapshots].map { |snapshot| snapshot[:id] }).to eq(ids.last(2))
      expect(list(http)[:notes])
        .to eq(["1 older snapshot was dropped: no more than 2 are kept, and no more than 64 MB."])
      expect(http.get("/rperf/snapshots/#{ids[0]}.rpv", local)).to have_attributes(
        status: 404, body: "There is no snapshot #{ids[0]} in process #{Process.pid}: " \
                           "it was dropped or deleted, or is another process's.\n"
      )
    end

    it "are in bounds of bytes, but for the newest" do
      http = client(viewer(max_bytes: 100))
      ids = Array.new(3) { take(http) }
      expect(list(http)).to include(snapshots: [include(id: ids.last, bytes: be > 100)],
                                    notes: [include("2 older snapshots were dropped")])
    end

    it "can be taken and looked at by many threads" do
      app = viewer(max_snapshots: 5)
      http = client(app)
      ids = Array.new(8) do
        Thread.new { Array.new(5) { [take(http), list(http)[:snapshots].size].first } }
      end.flat_map(&:value)
      expect(ids.map { |id| id[/\d+\z/].to_i }.sort).to eq([*1..40])
      expect(list(http)[:snapshots].size).to eq(5)
    end

    it "are lost by no interrupt once they are taken" do
      app = viewer
      rows = Array.new(20_000) { |number| [[["app.rb", "m#{number}"], ["app.rb", "<main>"]], 1, 1] }
      thread = Thread.new { app.add_snapshot({ mode: :cpu, frequency: 100, samples: rows }) }
      wait_until("work") { thread.status != "run" || app.instance_variable_get(:@snapshots).list.any? }
      thread.kill.join
      expect(app.instance_variable_get(:@snapshots).list.size).to eq(1)
    end

    it "may come from elsewhere" do
      app = viewer
      expect(app.add_snapshot(nil)).to be_nil
      expect(app.add_snapshot(Rperf.stop)).to eq("#{Process.pid}-1")
      expect(app.add_snapshot(made_profile)).to eq("#{Process.pid}-2")
      expect { app.add_snapshot({ mode: :wall }) }.to raise_error(ArgumentError, /frequency/)
      expect { app.add_snapshot("x") }.to raise_error(ArgumentError, /\Adata: must be the Hash/)
      expect(list(client(app))[:snapshots].map { |snapshot| snapshot.slice(:title, :start_ms, :duration_ns) })
        .to match([include(:start_ms), { title: "snapshot 2", duration_ns: 30_000_000 }])
    end

    it "let other threads run while they are compressed" do
      rows = Array.new(60_000) { |number| [[["app.rb", "m#{number}"], ["app.rb", "<main>"]], 1, 1] }
      profile = Rperf.const_get(:NativeProfile).from_h({ mode: :cpu, frequency: 100, samples: rows })
      turns = 0
      thread = Thread.new { loop { sleep(0.001) && turns += 1 } }
      wait_until("a turn") { turns.positive? }
      before = turns
      profile.for_viewer("large")
      # The thread that compresses would let go of the GVL at its end only.
      expect(turns).to be > before + 5
      thread.kill.join
    end

    it "have no label of the viewer's own requests" do
      seen = []
      auth = ->(_env) { seen << Rperf.labels }
      app = viewer(auth:)
      http = client(Rperf::RackMiddleware.new(app))
      Rperf.label(tenant: 1) do
        take(http)
        expect(Rperf.labels).to eq(tenant: 1)
      end
      expect(seen).to eq([{}])
      below = client(viewer(Rperf::RackMiddleware.new(->(_) { [200, {}, [Rperf.labels[:endpoint]]] })))
      expect(below.get("/orders/1").body).to eq("GET /orders/:id")
    end
  end

  describe "without a session to take one of" do
    it "says that profiling is off" do
      expect(list(http)).to include(can_take: false, snapshots: [],
                                    notes: ["Profiling is off in this process: Rperf.start turns it on."])
      expect(http.post("/rperf/snapshots", ours)).to have_attributes(status: 409, body: /\AProfiling is off/)
      expect(viewer.take_snapshot!).to be_nil
    end

    it "says that a session with aggregate: false gives none" do
      Rperf.start(aggregate: false)
      reason = "No snapshot can be taken: there are no snapshots of a session with aggregate: false."
      expect(list(http)).to include(can_take: false, notes: [reason])
      expect(http.post("/rperf/snapshots", ours)).to have_attributes(status: 409, body: "#{reason}\n")
      expect { viewer.take_snapshot! }.to raise_error(Rperf::Error, /aggregate: false/)
      expect(Rperf.stop).to include(:raw_samples)
    end

    it "takes what a session gives that has measured nothing yet" do
      Rperf.start(defer: true)
      id = take(http)
      header, = header_and_text(http.get("/rperf/snapshots/#{id}.rpv", local))
      expect(header[:profiles].size).to eq(1)
      expect(http.get("/rperf/diff/#{id}/#{take(http)}.rpv", local).status).to eq(200)
    end
  end

  {
    ["rperf record", "rperf record"] => ["record", "-o", "out.pb.gz"],
    %w[RPERF_ENABLED RPERF_ENABLED] => nil
  }.each do |(name, initiator), arguments|
    it "takes snapshots of all the time since the start under #{name}, and says so" do
      program = write_file("app.rb", <<~RUBY)
        require "rperf/viewer"
        require "json"
        app = Rperf::Viewer.new(auth: ->(_) { true })
        2.times do
          sleep 0.05
          app.take_snapshot! or raise "no snapshot"
        end
        env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/snapshots.json" }
        puts app.call(env)[2]
        env = { "REQUEST_METHOD" => "POST", "PATH_INFO" => "/snapshots", "HTTP_X_RPERF" => "1" }
        puts app.call(env)[0]
      RUBY
      library = File.join(Commands::ROOT, "lib")
      outcome = if arguments
                  rperf(*arguments, "-m", "wall", ruby, "-I", library, program)
                else
                  run(ruby, "-I", library, program, env: { "RPERF_ENABLED" => "1", "RPERF_MODE" => "wall",
                                                           "RPERF_OUTPUT" => "out.pb.gz", "RUBYOPT" => "-rrperf",
                                                           "RUBYLIB" => library })
                end
      expect(outcome.status).to eq(0), outcome.stderr
      answer, status = outcome.stdout.lines
      answer = JSON.parse(answer, symbolize_names: true)
      expect(answer[:can_take]).to be(true)
      expect(answer[:notes]).to match([/\A#{initiator}.* profiles this program as a whole: each snapshot is of all/])
      lengths = answer[:snapshots].map { |snapshot| snapshot[:duration_ns] }
      expect(lengths[0]).to be > 50_000_000
      expect(lengths[1]).to be > lengths[0] + 50_000_000
      expect(status).to eq("201\n")
      # And the program's own profile has lost nothing.
      expect(weight_of(read_profile(path_to("out.pb.gz")), "Kernel#sleep")).to be > 95_000_000
    end
  end

  describe "a request that isn't right" do
    {
      ["GET", "/rperf/nothing"] => 404, ["GET", "/rperf//"] => 404, ["GET", "/rperf/snapshots.json/"] => 404,
      ["GET", "/rperf/snapshots/1-9.rpv"] => 404, ["GET", "/rperf/diff/1-1/1-2.rpv"] => 404,
      ["GET", "/rperf/snapshots/../x.rpv"] => 404, ["GET", "/rperf/snapshots/\n1-1.rpv"] => 404,
      ["GET", "/rperf/snapshots/%2e.rpv"] => 404, ["GET", "/rperf/\xFF"] => 404,
      ["DELETE", "/rperf/snapshots/1-9"] => 404,
      ["POST", "/rperf/"] => "GET, HEAD", ["DELETE", "/rperf/snapshots.json"] => "GET, HEAD",
      ["GET", "/rperf/snapshots"] => "POST", ["HEAD", "/rperf/snapshots"] => "POST",
      ["OPTIONS", "/rperf/snapshots"] => "POST", ["POST", "/rperf/snapshots/1-1"] => "DELETE",
      ["PUT", "/rperf/snapshots/1-1.rpv"] => "GET, HEAD", ["get", "/rperf/"] => "GET, HEAD"
    }.each do |(method, path), expected|
      it "is answered with #{expected}: #{method} #{path.inspect}" do
        env = Rack::MockRequest.env_for("/", ours).merge("REQUEST_METHOD" => method, "PATH_INFO" => path)
        status, headers, body = viewer.call(env)
        expect([status, headers["allow"]]).to eq(expected.is_a?(Integer) ? [expected, nil] : [405, expected])
        expect(body.sum(&:size)).to method == "HEAD" ? eq(0) : be_positive
        expect(headers).to include("content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store",
                                   "x-content-type-options" => "nosniff")
      end
    end

    it "gets no body for HEAD, and the headers of GET" do
      Rperf.start(mode: :wall)
      ["", "snapshots.json", "snapshots/#{take(http)}.rpv"].each do |path|
        get, head = %w[GET HEAD].map { |method| http.request(method, "/rperf/#{path}", local) }
        expect(head.body).to eq("")
        # Rack 2's own names have capitals.
        expect(head.headers.transform_keys(&:downcase)).to eq(get.headers.transform_keys(&:downcase))
        expect(get["content-length"]).to eq(get.body.bytesize.to_s)
      end
    end
  end

  it "works when the server has frozen it" do
    Rperf.start(mode: :wall)
    app = viewer.freeze
    http = client(app)
    take(http)
    expect(list(http)[:snapshots].size).to eq(1)
    expect(http.get("/rperf/", local).status).to eq(200)
  end

  it "is found as its instance, which is the last one made" do
    app = viewer
    expect(described_class.instance).to equal(app)
    expect(described_class.instance.inspect).to eq("#<Rperf::Viewer /rperf>")
  end

  it "names the process whose snapshots they are" do
    Rperf.start(mode: :wall)
    id = take(http)
    reader, writer = IO.pipe
    pid = fork do
      Rperf.start(mode: :wall)
      writer.write(JSON.generate([take(http), list(http)]))
    ensure
      exit!
    end
    writer.close
    taken, listed = JSON.parse(reader.read, symbolize_names: true)
    Process.wait(pid)
    expect(taken).to eq("#{pid}-2")
    expect(listed).to include(process: pid, snapshots: [include(id:), include(id: taken)])
    expect(http.get("/rperf/snapshots/#{taken}.rpv", local).body).to include("in process #{Process.pid}: ")
  end

  {
    { path: "rperf" } => %r{\Apath: must be a path such as "/rperf", not "rperf"\z},
    { path: "/a b" } => /\Apath: must be a path/, { path: "//x" } => /\Apath: must be a path/,
    { path: :rperf } => /\Apath: must be .*not :rperf/, { path: "/a\n" } => /\Apath: must be a path/,
    { max_snapshots: 0 } => /\Amax_snapshots: must be an Integer above 0, not 0\z/,
    { max_bytes: 1.5 } => /\Amax_bytes: must be an Integer above 0, not 1.5\z/,
    { auth: true } => /\Aauth: must be nil or something to call, such as a Proc, not true\z/
  }.each do |options, message|
    it "refuses #{options}" do
      expect { viewer(**options) }.to raise_error(ArgumentError, message)
    end
  end
end
