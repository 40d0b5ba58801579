# frozen_string_literal: true

# An account is its thread's. The block form can't end on another one, but a server that takes a request up in one
# thread and ends it in another can, by the same two calls as the block form and the middleware.
RSpec.describe "An account that ends on another thread", vm: true do
  head = <<~RUBY
    NATIVE = Rperf.const_get(:Native)
    STATES = %i[running_ns gvl_wait_ns blocked_ns gc_ns suspended_ns]
    # What is missing from, or too much in, the sum of the states.
    def rest(account) = STATES.sum { |state| account.to_h[state] } - account.wall_ns

    # A thread that does one piece of work after the other.
    class Worker
      def initialize
        @work = Queue.new
        @done = Queue.new
        @thread = Thread.new { loop { @done << @work.pop.call } }
      end

      def call(&work)
        @work << work
        @done.pop
      end

      def kill = @thread.kill.join
    end

    def open_in(worker) = worker.call { [].tap { |opened| NATIVE.open_account(opened) } }
  RUBY

  define_method(:told_of) { |program, **options| told("#{head}\n#{program}", symbolize_names: true, **options) }

  it "says nothing, and leaves those of both threads as they are" do
    so_far, ended, outer, inner, other, rests = told_of(<<~RUBY)
      first, second = Worker.new, Worker.new
      outer = open_in(first)
      opened = open_in(first)
      first.call { sleep(0.02) }
      other = open_in(second)
      so_far = [opened.first.open?, opened.first.blocked_ns]
      second.call { NATIVE.close_account(opened); sleep(0.03) }
      ended = opened.first.to_h
      ended[:said] = [opened.first.to_s, opened.first.open?, opened.first.known?]
      inner = first.call { Rperf.account { 1_000.times { Object.new }; sleep(0.01) } }
      # Once more, on its own thread: it has ended.
      first.call { NATIVE.close_account(opened) }
      first.call { NATIVE.close_account(outer) }
      second.call { NATIVE.close_account(other) }
      told = [outer.first, inner, other.first]
      puts [so_far, ended, *told.map(&:to_h), [*told.map { |it| rest(it) }, opened.first.wall_ns]].to_json
    RUBY
    expect(so_far).to match([true, be >= 19_000_000])
    expect(ended.delete(:said)).to eq(["unknown", false, false])
    expect(ended.values.uniq).to eq([nil])
    expect(rests).to eq([0, 0, 0, nil])
    expect(outer[:blocked_ns]).to be_between(30_000_000, outer[:wall_ns])
    expect(outer[:suspended_ns]).to eq(0)
    expect(inner[:blocked_ns]).to be_between(10_000_000, inner[:wall_ns])
    expect(inner[:wall_ns]).to be < outer[:wall_ns]
    # From Ruby 4.0 on the VM counts objects in portions.
    expect(inner[:allocated_objects]).to be_within(RUBY_VERSION < "4.0" ? 60 : 1_100).of(1_000)
    expect(other[:blocked_ns]).to be_between(30_000_000, other[:wall_ns])
  end

  it "is told to no handler, counts for no name, and has no calls of ops" do
    handled, names, calls, rests = told_of(<<~RUBY)
      handled = []
      Rperf.on_account { |name, account| handled << [name, rest(account)] }
      Rperf.start(mode: :account)
      Rperf.start(mode: :wall, measure: :ops)
      first, second = Worker.new, Worker.new
      work = -> { Rperf.op("x") { sleep(0.001) } }
      opened = open_in(first)
      opened.first.name = "moved"
      first.call { work.call }
      calls = [opened.first.ops&.map { |op| op[:calls] }]
      second.call do
        NATIVE.close_account(opened)
        Rperf.const_get(:Accounts).send(:ended, opened.first)
      end
      calls << opened.first.ops
      rests = [first, second].map do |worker|
        account = worker.call { Rperf.account("kept") { 3.times { work.call } } }
        calls << account.ops.map { |op| op[:calls] }
        rest(account)
      end
      calls << Rperf.stop.ops[:ops].map { |op| op.values_at(:name, :calls) }
      puts [handled, Rperf.accounts.transform_values { |it| it[:count] }, calls, rests].to_json
    RUBY
    expect(rests).to eq([0, 0])
    expect(handled).to eq([["kept", 0]] * 2)
    expect(names).to eq(kept: 2)
    expect(calls).to eq([[1], nil, [3], [3], [["[op] x", 7]]])
  end

  # QEMU keeps memory for each thread.
  it "is given up, whether its thread goes on or has ended, and takes no memory", emulated: false do
    ended, grown, rests = told_of(<<~RUBY)
      def resident = Integer(File.read("/proc/self/status")[/VmRSS:\\s+(\\d+)/, 1])
      first, second = Worker.new, Worker.new
      ended = []
      move = lambda do
        opened = first.call { Array.new(100) { [].tap { |it| NATIVE.open_account(it) } } }
        opened.shuffle.each { |it| NATIVE.close_account(it) }
        short = Thread.new { [].tap { |it| NATIVE.open_account(it) } }.value
        second.call { NATIVE.close_account(short) }
        ended |= [*opened, short].map { |it| [it.first.open?, it.first.wall_ns] }
      end
      work = -> { 100.times { move.call }; GC.start }
      3.times { work.call }
      before = resident
      3.times { work.call }
      grown = resident - before
      rests = [first, second].map { |worker| worker.call { rest(Rperf.account { sleep(0.001) }) } }
      puts [ended, grown, rests].to_json
    RUBY
    expect(ended).to eq([[false, nil]])
    expect(grown).to be < 8_000
    expect(rests).to eq([0, 0])
  end
end
