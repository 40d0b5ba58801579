# frozen_string_literal: true

# Ops whose end is missing, because a throw leaves their request.
RSpec.describe "Ops that a throw leaves open", vm: true, skip: Servers.missing("activesupport") do
  include OpPrograms

  # A library that tells when a statement begins and ends, and has no `ensure` for the latter.
  head = <<~'RUBY'
    require "active_support"
    require "active_support/notifications"
    require "rperf/rack"

    INSTRUMENTER = ActiveSupport::Notifications.instrumenter
    def values(table) = { sql: "SELECT * FROM #{table} WHERE id = 1", name: "Item Load" }
    def begin_op(table) = INSTRUMENTER.start("sql.active_record", values(table))
    def query(table, seconds)
      begin_op(table)
      sleep(seconds)
      INSTRUMENTER.finish("sql.active_record", values(table))
    end

    APP = Rperf::RackMiddleware.new(->(env) { env["app"].call; [200, {}, []] })
    def get(path, &app)
      APP.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "app" => app })
    end
    # A request that is left with so many ops open, of a table each.
    def leave(*tables, seconds: 0.03)
      catch(:done) { get("/left") { tables.each { |table| begin_op(table) }; sleep(seconds); throw :done } }
    end
    def measured(**, &) = Rperf.start(mode: :wall, frequency: 1000, measure: %i[ops requests], output: "p.pb.gz", **, &)
  RUBY

  define_method(:told_of) { |program| ops_of(program, head:) }

  def name(table) = "[SQL] SELECT * FROM #{table} WHERE id = ?"

  it "are undone with it: what follows is in no op, and the next request's are what they would be" do
    labels, took, top = told_of(<<~RUBY)
      labels = []
      took = nil
      profile = measured do
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        leave("left", "inner")
        took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
        labels << Rperf.labels
        sleep 0.05
        get("/next") { labels << Rperf.labels; 3.times { query("following", 0.01) }; sleep 0.05 }
      end
      puts [labels, took, profile.top(by: :op, idle: true).to_h { _1.values_at(:name, :self) }].to_json
    RUBY
    expect(labels).to eq([{}, { "endpoint" => "GET /next" }])
    expect(top[name("inner")]).to be_between(20_000_000, took + 20_000_000)
    expect(top[name("following")]).to be >= 25_000_000
    expect(top["(no op)"]).to be >= 95_000_000
    following_alone
    told = JSON.parse(rperf("why", "--json", path_to("p.pb.gz"), "next").stdout)
    expect([told["requests"], told["ops"].map { |it| it["name"] }]).to eq([1, [name("following")]])
  end

  # What has no end has no call; the next request's three have their own time, and nothing is within or around them.
  def following_alone
    ops = Rperf.load(path_to("p.pb.gz")).ops
    expect(ops[:ops].map { |it| it.values_at(:name, :calls) }).to eq([[name("following"), 3]])
    sums = ops[:ops].first
    states = sums.values_at(:running_ns, :gvl_wait_ns, :blocked_ns, :gc_ns, :suspended_ns)
    expect(states.sum).to eq(sums[:wall_ns])
    expect(sums[:blocked_ns]).to be_between(29_900_000, 2_000_000_000)
    expect(ops[:total].values_at(:calls, :wall_ns)).to eq([3, sums[:wall_ns]])
  end

  it "take no room from later ones, however many there are, and count for no N+1" do
    told_of(<<~RUBY)
      measured do
        50.times { leave(*Array.new(12) { |depth| "left_\#{depth}" }, seconds: 0) }
        10.times { get("/next") { 6.times { query("following", 0.0005) }; 4.times { |depth| begin_op("open_\#{depth}") } } }
        4.times do
          get("/nested") do
            Rperf.op("outer") { catch(:inner) { Rperf.op("inner") { begin_op("left"); throw :inner } }; query("x", 0.001) }
          end
        end
      end
    RUBY
    ops = Rperf.load(path_to("p.pb.gz")).ops
    calls = ops[:ops].to_h { |it| it.values_at(:name, :calls) }
    expect(calls).to include(name("following") => 60, name("x") => 4, "[op] outer" => 4, "[op] inner" => 4)
    expect(calls.except(name("following"), name("x"), "[op] outer", "[op] inner")).to eq({})
    expect(ops[:repeats].map { |it| it.values_at(:name, :endpoint, :calls, :repeated) })
      .to eq([[name("following"), "GET /next", 60, 10]])
    expect(ops[:total][:displaced_calls]).to eq(0)
  end
end
