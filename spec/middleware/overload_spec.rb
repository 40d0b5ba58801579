# frozen_string_literal: true

# As many requests as there can be, of 0.1 ms each, beside one that goes on all the time.
RSpec.describe "Requests without end", vm: true do
  program = <<~'RUBY'
    require "rperf/rack"
    require "json"

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def compute(seconds)
      deadline = now + seconds
      nil while now < deadline
    end
    # In MB.
    def resident = File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1].to_i / 1024.0

    APP = Rperf::RackMiddleware.new(->(env) { env["app"].call; [200, {}, []] })
    def get(path, &app)
      APP.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "app" => app })
    end
    def by_class(profile, path)
      rows = profile.top(by: "label:%latency", idle: true, limit: nil, tagfocus: "endpoint=^GET #{path}$")
      rows.to_h { |row| row.values_at(:name, :self) }
    end

    def serve(seconds, every)
      count = 0
      memory = []
      ends = now + seconds
      due = now + every
      until now >= ends
        get("/short") { compute(0.0001) }
        count += 1
        # The other one gets its turn as often as it wants, and has the more samples.
        Thread.pass
        next if now < due

        memory << resident
        due += every
      end
      [count, memory]
    end

    seconds, every = ARGV.map { |it| Float(it) }
    Rperf.start(mode: :wall, frequency: 1000, measure: %i[requests blame])
    began = now
    is_over = false
    profile = took = nil
    served = Thread.new { serve(seconds, every).tap { is_over = true } }
    get("/long") do
      until is_over
        sleep(0.002)
        compute(0.0005)
      end
      took = now - began
      profile = Rperf.stop
    end
    Rperf.save("p.pb.gz", profile)
    count, memory = served.value
    puts({ count:, memory:, seconds: took, long: by_class(profile, "/long"), short: by_class(profile, "/short"),
           waiting: profile.totals(tagfocus: "%latency=open")[:samples], losses: profile.totals[:losses],
           total: profile.totals(idle: true)[:total] }.to_json)
  RUBY

  # What the program says, for so many seconds, with the memory at so many moments.
  define_method(:overload) do |seconds, moments|
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", write_file("program.rb", program), seconds.to_s,
                  seconds.fdiv(moments + 0.5).to_s, limit: Commands::TIME_LIMIT + (2 * seconds))
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    JSON.parse(outcome.stdout).tap { |told| expect(told["memory"].size).to be >= moments / 2 }
  end

  # All time of the two threads is there, or counted as lost, and all requests are.
  def expect_all_counted(told)
    losses = told["losses"]
    expect(losses.values_at("unlabelled_samples", "truncated_samples")).to eq([0, 0])
    threads = 2 * told["seconds"] * 1e9
    expect(told["total"] + losses["dropped_ns"]).to be_within((0.02 * threads) + 50_000_000).of(threads)
    expect_requests_counted(told["count"])
  end

  def expect_requests_counted(count)
    endpoints = JSON.parse(rperf("why", "--json", path_to("p.pb.gz")).stdout)["endpoints"]
    expect(endpoints.map { |it| it.values_at("name", "requests") }).to eq([["GET /short", count]])
    expect(endpoints.first["classes"].values.sum).to eq(count)
  end

  # The time of the request that goes on is open, and no other is.
  def expect_open_counted(told)
    long = told["seconds"] * 1e9
    expect(told["long"].keys).to eq(["open"])
    expect(told["long"]["open"]).to be_within((0.02 * long) + 50_000_000).of(long)
    expect(told["short"].keys).to include("first", "typical")
    expect(told["short"].keys).not_to include("open")
  end

  it "are counted, and so is the time of the one that goes on, as open" do
    told = overload(2, 4)
    expect_all_counted(told)
    expect_open_counted(told)
    expect(told["memory"].last - told["memory"].first).to be < 24
  end

  it "take no more memory after a minute than the bounds allow", alone: true do
    skip "takes a minute; with RPERF_LONG=1" unless Commands::LONG
    told = overload(60, 12)
    expect_all_counted(told)
    expect_open_counted(told)
    # What waits for the end of the long one is some MB, with the room that is allotted for more.
    expect(told["waiting"]).to be > 5_000
    expect(told["memory"].last - told["memory"].first).to be < 24
    expect(told["count"]).to be > 60_000
  end
end
