# frozen_string_literal: true

# The slowest requests of each endpoint have a label of their own on their samples (measure: :requests).
RSpec.describe "The slowest requests", vm: true do
  head = <<~RUBY
    require "rperf/rack"

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def compute(ms)
      deadline = now + (ms / 1000.0)
      nil while now < deadline
    end
    def odd(ms) = compute(ms)

    MIDDLEWARE = Rperf::RackMiddleware.new(->(env) { env["app"].call; [200, {}, []] })
    def get(path, &app)
      MIDDLEWARE.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "app" => app })
    end
    # The number of a request is that of its turn. Every 20th is slow, the more so the later it is.
    def serve(path, count = 200)
      count.times { |turn| get(path) { compute(0.5); odd(20 + turn) if turn % 20 == 7 } }
    end

    def start(**, &) = Rperf.start(mode: :wall, frequency: 1000, measure: :requests, **, &)
    def by_request(profile) = profile.top(by: "label:%request", idle: true, limit: nil).to_h { _1.values_at(:name, :self) }
  RUBY

  define_method(:told_of) { |program, **run| told("#{head}\n#{program}", **run) }

  def slowest(endpoint)
    JSON.parse(rperf("why", "--json", path_to("slow.pb.gz"), endpoint).stdout)["slowest"]
  end

  it "have a label with which all of their samples are found, and only these" do
    sums, whole = told_of(<<~RUBY)
      profile = start { serve("/orders"); serve("/cart"); compute(5) }
      Rperf.save("slow.pb.gz", profile)
      puts [by_request(profile), profile.top(by: :state, idle: true, limit: nil).sum { _1[:self] }].to_json
    RUBY
    expect(sums.values.sum).to eq(whole)
    rest = sums.delete("(no %request)")
    expect(rest).to be > 200_000_000
    told = %w[orders cart].map { slowest(_1) }
    expect(told.map(&:size)).to eq([5, 5])
    labels = told.flatten.to_h { |it| [it["request"], it["wall_ns"]] }
    expect(labels.keys).to match_array(sums.keys)
    expect(labels.keys).to all(match(/\A\h{8}-\d+\z/))
    # Ticks are late on a busy machine, and their time may be of the request before.
    labels.each { |label, wall| expect(sums[label]).to be_within((wall / 4) + 30_000_000).of(wall) }
    expect(labels.keys.sum { sums[_1] }).to be_within(labels.values.sum / 6).of(labels.values.sum)
    found = rperf("report", "--top", "--tagfocus", "%request=^#{labels.keys.first}$",
                  path_to("slow.pb.gz"))
    expect(found.stdout).to include("Object#odd").and include("RackMiddleware")
  end

  it "are named on the page of their endpoint, with the command that shows one of them" do
    told_of(%(Rperf.save("slow.pb.gz", start { serve("/orders") }); puts "[]"))
    page = rperf("why", path_to("slow.pb.gz"), "orders").stdout
    labels = slowest("orders").map { _1["request"] }
    expect(page.lines.grep(/ \h{8}-\d+$/).map { _1.split.last }).to eq(labels)
    expect(page).to include("rperf report --relative --tagfocus '%request=^#{labels.first}$' FILE")
  end

  it "are those of each process, and of each part of a session" do
    first, second, rest, child = told_of(<<~RUBY)
      start
      serve("/orders", 100)
      first = by_request(Rperf.snapshot(clear: true))
      get("/orders") { compute(30) }
      second = by_request(Rperf.stop)
      reader, writer = IO.pipe
      pid = fork do
        writer.write(by_request(start { get("/forks") { compute(20) } }).to_json)
        exit!(0)
      end
      writer.close
      Process.wait(pid)
      puts [first, second, by_request(start { get("/orders") { compute(20) } }), reader.read].to_json
    RUBY
    expect(first.keys.size).to eq(6)
    # One alone is the slowest; those before it aren't there any more.
    expect((second.keys - ["(no %request)"]).size).to eq(1)
    expect((second.keys & first.keys) - ["(no %request)"]).to be_empty
    # The first request of each session.
    labels = [*rest.keys, *JSON.parse(child).keys].grep(/\A\h{8}-1\z/)
    expect(labels.uniq.size).to eq(2)
  end

  it "leave a program's own label of that name alone, and need no label without measure: :requests" do
    own, off = told_of(<<~RUBY)
      own = Rperf.start(mode: :wall, frequency: 1000) { Rperf.label("%request": "mine") { compute(30) } }
      off = Rperf.start(mode: :wall, frequency: 1000) { get("/orders") { compute(20) } }
      own = own.top(by: "label:label.%request", limit: nil).map { _1[:name] }
      puts [own, by_request(off).keys].to_json
    RUBY
    expect(own).to include("mine")
    expect(off).to eq(["(no %request)"])
  end
end
