# frozen_string_literal: true

# What libraries tell to ActiveSupport::Notifications: statements of Active Record, and operations of caches.
RSpec.describe "Ops of ActiveSupport::Notifications", vm: true, skip: Servers.missing("activesupport") do
  include OpPrograms

  # Active Record's adapters have one method around each statement, and the query cache another one for each answer
  # (AbstractAdapter#log and QueryCache, activerecord 7.2.2).
  adapter = <<~'RUBY'
    require "active_support"
    require "active_support/notifications"

    class Adapter
      def initialize = @instrumenter = ActiveSupport::Notifications.instrumenter

      def query(sql, name = "Item Load", binds = [], &)
        @instrumenter.instrument("sql.active_record", sql:, name:, binds:, type_casted_binds: binds, statement_name: nil,
                                                      async: false, connection: self, transaction: nil, row_count: 0, &)
      end

      def cached(sql, name = "Item Load", binds = [])
        info = { sql:, binds:, type_casted_binds: -> { binds }, name:, connection: self, transaction: nil, cached: true }
        ActiveSupport::Notifications.instrument("sql.active_record", info)
      end
    end

    DB = Adapter.new
    SELECT = "SELECT * FROM items WHERE id = 1"
    def select(&work) = DB.query(SELECT) { work&.call }
  RUBY

  define_method(:told_of) { |program, *options, **run| ops_of(program, *options, head: adapter, **run) }

  let(:select) { "[SQL] SELECT * FROM items WHERE id = ?" }

  it "are statements, but for those about tables, and answers of the query cache" do
    value = told_of(<<~'RUBY')
      value = nil
      measured do
        value = DB.query(SELECT) { |payload| payload[:row_count] = 1; "the value" }
        DB.query("SELECT * FROM items WHERE id = 2", nil) { nil }
        DB.query("BEGIN", "TRANSACTION") { nil }
        DB.query("SHOW FULL FIELDS FROM items", "SCHEMA") { sleep 0.01 }
        3.times { DB.cached("SELECT * FROM items WHERE id = 2") }
        # Those about tables are part of the statement that needs them, and end nothing.
        DB.query("UPDATE items SET name = 'x'") do
          DB.query("SHOW FULL FIELDS FROM items", "SCHEMA") { nil }
          DB.cached("SELECT 1")
          Rperf.op("within") { nil }
        end
      end
      puts [value].to_json
    RUBY
    expect(value).to eq(["the value"])
    expect(op_calls).to eq(select => 2, "[SQL] BEGIN" => 1, "[SQL] UPDATE items SET name = ?" => 1, "[op] within" => 1)
  end

  it "go on where they begin within labels that end before" do
    told = told_of(<<~'RUBY')
      instrumenter = ActiveSupport::Notifications.instrumenter
      values = { sql: SELECT, name: "Item Load" }
      begin_one = -> { instrumenter.start("sql.active_record", values) }
      end_one = -> { instrumenter.finish("sql.active_record", values) }
      labels = []
      profile = measured(frequency: 1000) do
        Rperf.label(x: 1) { begin_one.() }
        labels << Rperf.labels
        sleep 0.03
        end_one.()
        Rperf.label(outer: 1) do
          DB.query("UPDATE items SET name = 'x'") do
            Rperf.label(inner: 2) { begin_one.() }
            labels << Rperf.labels
            sleep 0.03
            end_one.()
            labels << Rperf.labels
          end
          labels << Rperf.labels
        end
        labels << Rperf.labels
        sleep 0.03
      end
      top = profile.top(by: :op).to_h { [_1[:name], _1[:self] / 1_000_000] }
      puts [labels, top, profile.top(by: "label:outer").to_h { [_1[:name], _1[:self] / 1_000_000] }].to_json
    RUBY
    labels, ops, outer = told
    expect(labels).to eq([{}, { "outer" => 1 }, { "outer" => 1 }, { "outer" => 1 }, {}])
    expect(op_calls).to eq(select => 2, "[SQL] UPDATE items SET name = ?" => 1)
    expect(ops[select]).to be >= 55
    expect(ops["(no op)"]).to be >= 28
    expect(outer["1"]).to be >= 28
    expect(outer["(no outer)"]).to be >= 56
  end

  it "end with their request, whatever doesn't end them" do
    told = told_of(<<~'RUBY')
      require "rperf/rack"
      instrumenter = ActiveSupport::Notifications.instrumenter
      app = Rperf::RackMiddleware.new(lambda { |_|
        Rperf.label(x: 1) { instrumenter.start("sql.active_record", { sql: SELECT, name: "Item Load" }) }
        [200, {}, []]
      })
      profile = measured(frequency: 1000) do
        app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/")
        sleep 0.05
      end
      puts profile.top(by: :op).to_h { [_1[:name], _1[:self] / 1_000_000] }.to_json
    RUBY
    expect(told["(no op)"]).to be >= 48
    expect(told[select].to_i).to be < 48
  end

  it "are the leaf of samples as long as they take" do
    states = told_of(<<~'RUBY')
      profile = measured(frequency: 1000) { 5.times { select { sleep 0.02 } } }
      puts profile.ops[:ops].map { |it| it.values_at(:name, :calls, :blocked_ns) }.push(
        profile[:samples].sum { |frames, weight| frames.any? { |path, _| path == "<op>" } ? weight : 0 }
      ).to_json
    RUBY
    (name, calls, blocked), sampled = states
    expect([name, calls]).to eq([select, 5])
    expect(blocked).to be_between(99_000_000, 2_000_000_000)
    expect(sampled).to be_within(0.3 * blocked).of(blocked)
  end

  it "have no value of a statement, no key and no name of a server in any byte of the profile" do
    told_of(<<~'RUBY')
      require "active_support/cache"
      measured do
        DB.query("SELECT * FROM items WHERE token = 's3cr3t' AND id IN (1, 2)", "s3cr3t", ["s3cr3t"]) { nil }
        DB.query("SELECT 's3cr3t' /* s3cr3t */ -- s3cr3t") { nil }
        cache = ActiveSupport::Cache::MemoryStore.new(namespace: "s3cr3t")
        cache.fetch("s3cr3t") { "s3cr3t" }
        cache.read_multi("s3cr3t", "s3cr3t-too")
      end
    RUBY
    expect(op_calls.values.sum).to be >= 5
    expect(bytes_of).not_to include("s3cr3t")
  end

  it "are operations of caches by the class of the store, without what makes a value" do
    told_of(<<~'RUBY')
      require "active_support/cache"
      class MyStore < ActiveSupport::Cache::MemoryStore; end
      cache = ActiveSupport::Cache::MemoryStore.new
      measured do
        cache.write("a", 1)
        2.times { cache.read("a") }
        cache.fetch("b") { Rperf.op("made") { 2 } }
        cache.exist?("a")
        cache.write_multi("c" => 1, "d" => 2)
        cache.read_multi("c", "d")
        cache.delete("a")
        cache.delete_multi(%w[c d])
        cache.delete_matched(/x/)
        MyStore.new.read("a")
        # As the stores have it that others can change, too (RedisCacheStore, activesupport 7.2.2).
        ActiveSupport::Notifications.instrument("cache_increment.active_support", key: "n", amount: 1, store: "Mine") { 1 }
        # Anybody may send such an event, with values of any kind.
        ActiveSupport::Notifications.instrument("cache_read.active_support", 1) { nil }
        ActiveSupport::Notifications.instrument("cache_read.active_support", store: :mine) { nil }
        ActiveSupport::Notifications.instrument("sql.active_record", nil) { nil }
        ActiveSupport::Notifications.instrument("sql.active_record", sql: 1) { nil }
      end
    RUBY
    store = "ActiveSupport::Cache::MemoryStore"
    expect(op_calls).to include(
      "[cache] write #{store}" => 2, "[cache] read #{store}" => be >= 3, "[cache] exist? #{store}" => 1,
      "[cache] write_multi #{store}" => 1, "[cache] read_multi #{store}" => 1, "[cache] delete #{store}" => 1,
      "[cache] delete_multi #{store}" => 1, "[cache] increment Mine" => 1,
      "[cache] delete_matched #{store}" => 1, "[cache] read MyStore" => 1, "[op] made" => 1
    )
    expect(op_calls.keys.grep(/fetch|generate|mine/)).to be_empty
  end

  it "change nothing of what the program gets and raises, and end with an exception, a throw and a timeout" do
    alone, inside, after = told_of(<<~'RUBY')
      require "timeout"
      cases = {
        value: -> { select { 1 } },
        block: -> { DB.query("SELECT 1") { |payload| payload.keys } },
        raised: -> { select { raise ArgumentError, "mine" } },
        fatal: -> { select { raise Exception, "mine" } },
        thrown: -> { catch(:done) { select { throw :done, 3 } } },
        broken: -> { [1].each { select { break } } },
        time_out: -> { Timeout.timeout(0.02) { select { sleep } } },
        killed: -> { Thread.new { select { Thread.exit } }.join.status },
        nested: -> { select { DB.query("SELECT 2") { raise "inner" } rescue 4 } },
        fiber: -> { fiber = Fiber.new { select { Fiber.yield } }; fiber.resume; select { 5 }; fiber.resume }
      }
      # An op that had stayed open would have this one inside of it.
      told = beside_a_session(cases) { Rperf.op("the next") { sleep 0.02 } }
      puts told.to_json
    RUBY
    expect([inside, after]).to eq([alone, alone])
    expect(alone.to_h.transform_values(&:first)).to include("raised" => "ArgumentError", "killed" => "returned")
    ops = Rperf.load(path_to("p.pb.gz")).ops
    expect(op_calls).to eq(select => 10, "[SQL] SELECT ?" => 2, "[op] the next" => 1)
    following = ops[:ops].find { |it| it[:name] == "[op] the next" }
    expect(following[:blocked_ns]).to be >= 19_000_000
  end

  it "are those of their fiber, which may give up control in one" do
    told_of(<<~'RUBY')
      measured do
        fibers = Array.new(2) { |it| Fiber.new { DB.query("SELECT c FROM t#{it}x") { Fiber.yield } } }
        fibers.each(&:resume)
        sleep 0.05
        select { sleep 0.03 }
        fibers.each(&:resume)
      end
    RUBY
    ops = Rperf.load(path_to("p.pb.gz")).ops[:ops].to_h { |it| [it[:name], it] }
    expect(ops.transform_values { |it| it[:calls] })
      .to eq(select => 1, "[SQL] SELECT c FROM t0x" => 1, "[SQL] SELECT c FROM t1x" => 1)
    expect(ops.fetch(select)[:blocked_ns]).to be_between(29_000_000, 2_000_000_000)
    ["[SQL] SELECT c FROM t0x", "[SQL] SELECT c FROM t1x"].each do |name|
      expect(ops[name][:suspended_ns]).to be >= 75_000_000
      expect(ops[name][:blocked_ns]).to be < 20_000_000
    end
  end

  it "are left out where the session begins or ends within one, and in a session of another kind" do
    told_of(<<~'RUBY')
      select { Rperf.start(mode: :wall, measure: :ops, output: "p.pb.gz") }
      DB.query("SELECT 1") { nil }
      select { Rperf.stop }
      Rperf.start(mode: :wall, output: "q.pb.gz") { select }
      select { measured(output: "r.pb.gz") { DB.query("SELECT 1") { nil } } }
      select
    RUBY
    expect([op_calls, op_calls("q.pb.gz"),
            op_calls("r.pb.gz")]).to eq([{ "[SQL] SELECT ?" => 1 }, {}, { "[SQL] SELECT ?" => 1 }])
  end

  it "are those of forked children, too, and of a program that has forked in one" do
    told_of(<<~'RUBY')
      measured(inherit: true) do
        select do
          pid = fork { DB.query("SELECT 1 FROM child") { nil } }
          Process.wait(pid)
          exit!(1) unless $?.success?
        end
        select
      end
    RUBY
    expect(op_calls).to eq(select => 2, "[SQL] SELECT ? FROM child" => 1)
  end

  it "are told once, whatever has been begun before" do
    told_of(<<~'RUBY')
      3.times { measured { select } }
    RUBY
    expect(op_calls).to eq(select => 1)
  end
end
