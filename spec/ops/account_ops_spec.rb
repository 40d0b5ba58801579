# frozen_string_literal: true

require "rperf/rack"

# The ops of one request, job or block.
RSpec.describe "Ops of an account", vm: true do
  def query(id, &work) = Rperf.op("SELECT * FROM items WHERE id = #{id}", kind: :sql, &work || -> {})
  def read(&) = Rperf.op("read", kind: :cache, &)

  def calls(account) = account.ops.to_h { |op| op.values_at(:name, :calls) }

  let(:item) { "[SQL] SELECT * FROM items WHERE id = ?" }

  around { |example| Rperf.start(mode: :wall, measure: :ops) { example.run } }

  it "are those that have ended in its fiber, with their time, those with the most of their own first" do
    open = nil
    account = Rperf.account do |it|
      2.times { |id| query(id) { sleep(0.005) } }
      read { query(3) { sleep(0.002) } }
      open = calls(it)
      Thread.new { query(4) }.join
      Fiber.new { query(5) }.resume
      query(6) { raise IOError }
    rescue IOError
      nil
    end
    expect(open).to eq(item => 3, "[cache] read" => 1)
    expect(calls(account)).to eq(item => 4, "[cache] read" => 1)
    queries, reads = account.ops
    expect(queries).to match(name: item, calls: 4, wall_ns: be_between(12_000_000, account.wall_ns),
                             own_ns: queries[:wall_ns])
    expect(reads[:wall_ns]).to be_between(2_000_000, queries[:wall_ns])
    expect(reads[:own_ns]).to be_between(0, reads[:wall_ns] - 2_000_000)
    expect([account.to_h[:ops], account.to_s]).to match([account.ops, /; 5 ops\z/])
  end

  it "are in each open account, and a call within itself takes no time of its own" do
    inner = nil
    outer = Rperf.account do
      query(1)
      inner = Rperf.account { query(2) { query(3) { sleep(0.01) } } }
    end
    expect([calls(outer), calls(inner)]).to eq([{ item => 3 }, { item => 2 }])
    expect(inner.ops.first[:wall_ns]).to be_between(10_000_000, inner.wall_ns)
  end

  it "come in the order of their own time, without the ops inside" do
    account = Rperf.account { read { 2.times { |id| query(id) { sleep(0.005) } } } }
    expect(account.ops.map { |it| it[:name] }).to eq([item, "[cache] read"])
    query, read = account.ops
    expect(read[:wall_ns]).to be >= query[:wall_ns]
    expect(account.ops.sum { |it| it[:own_ns] }).to eq(read[:wall_ns])
  end

  it "are told apart up to 63; the rest is one row" do
    account = Rperf.account { 70.times { |id| Rperf.op("op #{id}") { nil } } }
    expect(account.ops.map { |op| op[:calls] }.tally).to eq(1 => 63, 7 => 1)
    expect(calls(account)["(other)"]).to eq(7)
  end

  it "aren't known without a session that measures them, nor in a forked child" do
    Rperf.stop
    account = Rperf.account { Rperf.start(mode: :wall, measure: :ops) { query(1) } }
    expect([account.ops, account.to_h]).to match([nil, include(ops: nil)])
    expect(account.to_s).not_to include("ops")
    reader, writer = IO.pipe
    Rperf.start(mode: :wall, measure: :ops)
    Rperf.account { |it| Process.wait(fork { writer.write(it.ops.inspect) and exit!(true) }) }
    writer.close
    expect(reader.read).to eq("nil")
  end

  it "are in the account of a request" do
    environment = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/items" }
    told = []
    Rperf.on_account { |name, account| told << [name, calls(account)] if name == "GET /items" }
    Rperf.start(mode: :account)
    app = ->(_) { [200, {}, [query(1).to_s]] }
    Rperf::RackMiddleware.new(app).call(environment)
    expect(calls(environment["rperf.account"])).to eq(item => 1)
    expect(told).to eq([["GET /items", { item => 1 }]])
  ensure
    Rperf.stop(mode: :account)
  end
end
