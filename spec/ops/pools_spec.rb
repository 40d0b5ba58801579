# frozen_string_literal: true

# Waits for a connection of a pool, with the pools of Debian's packages.
RSpec.describe "Ops of pools", vm: true do
  include OpPrograms

  describe "of the gem connection_pool", skip: Servers.missing("connection_pool") do
    pool = <<~'RUBY'
      require "connection_pool"

      POOL = ConnectionPool.new(size: 1, timeout: 5) { +"connection" }

      # Another thread has the only connection, and gives it back once somebody waits for it, and a while more.
      def taken(seconds = 0.03)
        has = Queue.new
        other = Thread.new { POOL.with { has << true; sleep seconds } }
        has.pop
        yield
      ensure
        other.join
      end
    RUBY

    it "are waits, and no connections that are free" do
      told = ops_of(<<~'RUBY', head: pool)
        told = nil
        measured do
          told = taken { POOL.with { |it| it << "!" } }
          3.times { POOL.with { nil } }
        end
        puts [told, taken { outcome { POOL.with(timeout: 0.001) { nil } } }.first(1)].to_json
      RUBY
      expect(told).to eq(["connection!", ["ConnectionPool::TimeoutError"]])
      expect(op_calls).to eq("[pool] ConnectionPool" => 1)
      wait = Rperf.load(path_to("p.pb.gz")).ops[:ops].first
      expect(wait[:blocked_ns]).to be_between(15_000_000, 5_000_000_000)
    end

    it "fail as they do without rperf" do
      told = ops_of(<<~RUBY, head: pool)
        waits = -> { taken(#{0.05 * Commands::SLOWNESS}) { outcome { POOL.with(timeout: 0.001) { nil } } } }
        plain = waits.call
        puts [plain, measured { $measured = waits.call } && $measured].to_json
      RUBY
      plain, measured = told
      expect(plain.first).to eq("ConnectionPool::TimeoutError")
      expect([measured[0], measured[1][/\AWaited 0.001 sec/]]).to eq([plain[0], "Waited 0.001 sec"])
      expect(op_calls).to eq("[pool] ConnectionPool" => 1)
    end
  end

  describe "of Active Record", skip: Servers.missing("activerecord") do
    # A queue asks its pool for the lock, and waits in it (ConnectionPool::Queue, activerecord 7.2.2).
    queue = <<~'RUBY'
      require "active_record"
      require "active_record/connection_adapters/abstract/connection_pool"

      class Pool
        include MonitorMixin

        DATABASE = Struct.new(:name)
        attr_accessor :name

        def initialize(name)
          super()
          @name = name
        end

        def db_config = DATABASE.new(name)
      end

      QUEUE = ActiveRecord::ConnectionAdapters::ConnectionPool::Queue

      def queue(name) = QUEUE.new(Pool.new(name))

      # It gets a connection while somebody waits.
      def given_later(queue)
        giver = Thread.new { sleep 0.03; queue.add("connection") }
        queue.poll(5)
      ensure
        giver.join
      end
    RUBY

    it "are waits, with the name of the database" do
      told = ops_of(<<~'RUBY', head: queue)
        told = []
        measured do
          primary = queue("primary")
          told << given_later(primary)
          primary.add("free")
          told << primary.poll(5) << primary.poll
          told << outcome { primary.poll(0.001) }.first
          2.times { given_later(queue("animals")) }
          given_later(queue(:odd))
          given_later(QUEUE.new)
        end
        puts told.to_json
      RUBY
      expect(told).to eq(["connection", "free", nil, "ActiveRecord::ConnectionTimeoutError"])
      expect(op_calls).to eq("[pool] ActiveRecord primary" => 2, "[pool] ActiveRecord animals" => 2,
                             "[pool] ActiveRecord" => 2)
    end

    it "have no names of pools that fail, told once" do
      complaint = "rperf: ops of pools have no names: mine (RuntimeError)\n"
      told = ops_of(<<~'RUBY', head: queue, stderr: complaint)
        def (BROKEN = Pool.new("x")).db_config = raise("mine")
        told = nil
        measured { told = Array.new(2) { given_later(QUEUE.new(BROKEN)) } }
        puts told.to_json
      RUBY
      expect(told).to eq(%w[connection connection])
      expect(op_calls).to eq("[pool] ActiveRecord" => 2)
    end
  end
end
