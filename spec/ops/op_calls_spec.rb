# frozen_string_literal: true

# Limits of queries in tests.
RSpec.describe "Rperf.op_calls", vm: true do
  include Commands

  def query(id) = Rperf.op("SELECT * FROM items WHERE id = #{id}", kind: :sql) { nil }

  let(:item) { "[SQL] SELECT * FROM items WHERE id = ?" }

  it "counts the calls of all threads by their names, most first, in a session of its own" do
    calls = Rperf.op_calls do
      query(0)
      Array.new(2) { |id| Thread.new { query(id) } }.each(&:join)
      Rperf.op("read", kind: :cache) { query(7) }
    end
    expect(calls.to_a).to eq([[item, 4], ["[cache] read", 1]])
    expect(Rperf.op_calls(kind: "SQL") { Rperf.op("read", kind: :cache) { query(1) } }).to eq(item => 1)
    expect([Rperf.op_calls { nil }, Rperf.running?, Rperf.stop]).to eq([{}, false, nil])
  end

  it "counts within a session that measures ops, and leaves it as it is" do
    profile = Rperf.start(mode: :wall, measure: :ops) do
      query(1)
      expect(Rperf.op_calls(kind: :sql) { 2.times { |id| query(id) } }).to eq(item => 2)
      taken = Rperf.op_calls do
        query(1)
        Rperf.snapshot(clear: true)
        Rperf.op_calls { query(2) }
      end
      expect(taken).to eq(item => 2)
    end
    expect(profile.ops[:ops].sum { |it| it[:calls] }).to eq(1)
  end

  it "refuses a session that measures no ops, and takes what the block raises" do
    Rperf.start(mode: :wall) do
      expect { Rperf.op_calls { nil } }
        .to raise_error(Rperf::Error, "the session that runs doesn't measure ops (measure: :ops, --measure ops)")
    end
    expect { Rperf.op_calls { raise IOError, "mine" } }.to raise_error(IOError, "mine")
    expect([Rperf.running?, Rperf.stop]).to eq([false, nil])
    expect { Rperf.op_calls }.to raise_error(ArgumentError, "Rperf.op_calls needs a block")
    expect { Rperf.op_calls { Rperf.stop } }
      .to raise_error(Rperf::Error, "the session has ended before its ops could be counted")
  end

  it "counts in threads that begin and end as they like, and leaves a session of the program's alone" do
    threads = Array.new(8) do |id|
      Thread.new { Array.new(20) { Rperf.op_calls { query(id) and sleep(0.0005 * (id % 3)) }.fetch(item) } }
    end
    expect(threads.flat_map(&:value)).to all(be >= 1)
    expect([Rperf.running?, Rperf.stop]).to eq([false, nil])
    calls = lambda do
      Rperf.op_calls do
        query(1)
        Rperf.stop
        Rperf.start(mode: :wall, measure: :ops)
      end
    end
    expect(&calls).to raise_error(Rperf::Error, "the session has ended before its ops could be counted")
    query(2)
    expect(Rperf.stop.ops[:ops].sum { |it| it[:calls] }).to eq(1)
    expect(Rperf.op_calls { query(3) }).to eq(item => 1)
  end

  it "leaves no session behind when it is interrupted" do
    30.times do |turn|
      thread = Thread.new { loop { Rperf.op_calls { query(1) } } }
      sleep(0.0003 * turn)
      thread.kill.join
      expect(Rperf.running?).to be(false), turn.to_s
    end
  end

  program = <<~RUBY
    def query(id, table = "items") = Rperf.op("SELECT * FROM \#{table} WHERE id = \#{id}", kind: :sql) { id }
    def read = Rperf.op("read", kind: :cache) { nil }
    def hog = 5.times { |id| query(id); query(id, "tags"); read } + query(1)
    def tables = 12.times { |id| query(id, "t_\#{"abcdefghijklmnop"[id]}") }
  RUBY
  message = <<~TEXT
    expected the block to make at most 10 queries, but it made 11:
           6  [SQL] SELECT * FROM items WHERE id = ?
           5  [SQL] SELECT * FROM tags WHERE id = ?
  TEXT

  # The output of these tests, whose number of failures must be this.
  def failing(number, *command)
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", *command)
    expect(outcome.stdout).to match(/\b#{number} failures/)
    outcome.stdout
  end

  it "is a matcher of RSpec with the names in its message" do
    write_file("limits_spec.rb", <<~RUBY)
      require "rperf/rspec"
      #{program}
      RSpec.describe "limits" do
        it { expect { query(1) }.to make_at_most(1).queries }
        it { expect { read }.to make_at_most(0).queries.and make_at_most(1).ops(:cache) }
        it { expect { query(1) }.not_to make_at_most(0).ops }
        it("a") { expect { hog }.to make_at_most(10).queries }
        it("b") { expect { tables }.to make_at_most(3).ops(:sql) }
        it("c") { expect { query(1) }.to make_at_most(1) }
        it("d") { expect { query(1) }.to make_at_most(-1).queries }
        it("e") { expect { query(1) }.not_to make_at_most(1).queries }
      end
    RUBY
    told = failing(5, Gem.bin_path("rspec-core", "rspec"), "--format", "documentation", "limits_spec.rb")
    told = told.gsub(/^ {7}/, "")
    expect(told).to include("is expected to make at most 1 query\n", message, "          and 2 more\n",
                            "ArgumentError:\nsay of what: make_at_most(1).queries, or .ops",
                            "ArgumentError:\nmost: must be a number of calls, not -1",
                            "expected the block not to make at most 1 query, but it made 1:")
    expect(told.scan("[SQL] SELECT * FROM t_").size).to eq(10)
  end

  it "isn't checked in a session without ops, which is said once" do
    write_file("limits_spec.rb", <<~RUBY)
      require "rperf/rspec"
      #{program}
      RSpec.describe("limits") do
        it { expect { hog }.to make_at_most(10).queries }
        it { expect { query(1) }.not_to make_at_most(1).ops }
      end
    RUBY
    rspec = [ruby, Gem.bin_path("rspec-core", "rspec"), "limits_spec.rb"]
    outcome = rperf("record", "-m", "wall", "-o", "p.data", *rspec,
                    env: { "RUBYLIB" => File.join(Commands::ROOT, "lib") })
    expect([outcome.status.exitstatus, outcome.stdout]).to match([0, /^2 examples, 0 failures$/])
    expect(outcome.stderr.lines.grep(/limits of ops/))
      .to eq(["rperf: limits of ops aren't checked: the session that runs doesn't measure ops (measure: :ops, " \
              "--measure ops)\n"])
  end

  it "is an assertion of Minitest" do
    write_file("limits_test.rb", <<~RUBY)
      require "minitest/autorun"
      require "rperf/minitest"
      #{program}
      class LimitsTest < Minitest::Test
        def test_kept = assert_at_most(1) { query(1) }
        def test_of_a_kind = assert_at_most(1, :cache) { hog.then { read } }
        def test_of_all = assert_at_most(2, nil) { query(1).then { read } }
        def test_broken = assert_at_most(10) { hog }
      end
    RUBY
    told = failing(2, "limits_test.rb")
    expect(told).to include(message.chomp, "at most 1 op of the kind cache, but it made 6:", "4 runs, 4 assertions")
  end
end
