# frozen_string_literal: true

require "json"
require_relative "../../bench/support/c_extension"

# A driver that waits for its server without the GVL, beside a thread that always computes: the op tells the time that
# the server took from that of the GVL.
RSpec.describe "The waits of an op beside a thread that computes", vm: true do
  native = Bench::CExtension.new("spec_native", File.expand_path("../native", __dir__))

  before { expect(native.missing).to be_nil }

  # The driver reads the clock without the GVL, as it begins to wait, and as it wants the GVL again.
  program = <<~RUBY
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    def query(id)
      Rperf.op("SELECT * FROM items WHERE id = \#{id}", kind: :sql) do
        since = now
        waited = SpecNative.wait(2_000_000)
        [waited, now - since - waited]
      end
    end

    def session(calls)
      Rperf.start(mode: :wall, frequency: 1000, measure: :ops)
      since = now
      told = Array.new(calls) { |id| query(id) }
      took = now - since
      ops = Rperf.stop.ops[:ops]
      { calls:, ops:, took:, waits: told.map(&:first), rest_ns: told.sum(&:last) }
    end

    Thread.new { loop { nil } }
    puts [session(50), *Array.new(30) { session(5) }].to_json
  RUBY

  # The op's times less those of the program's clocks, in ns per call.
  def difference(session, state)
    expected = { blocked_ns: session[:waits].sum, gvl_wait_ns: session[:rest_ns] }.fetch(state)
    (session[:ops].first[state] - expected) / session[:calls]
  end

  def expect_whole(session)
    op, *others = session[:ops]
    expect([op[:name], op[:calls], others]).to eq(["[SQL] SELECT * FROM items WHERE id = ?", session[:calls], []])
    expect(op.values_at(:running_ns, :gvl_wait_ns, :blocked_ns, :gc_ns, :suspended_ns).sum).to eq(op[:wall_ns])
    expect(op[:wall_ns]).to be <= session[:took]
    # The kernel's own delay is in it, as it is in the driver's clock.
    expect(op[:blocked_ns]).to be >= session[:waits].sum
  end

  def median(numbers) = numbers.sort[numbers.size / 2]

  Compilers::FLAGS.merge("no compiler" => "--disable-yjit").each do |name, option|
    it "are those of its own clocks, with #{name}", alone: true do
      # The thread that computes has the GVL for 10 ms at a time, not for 100.
      many, *few = told(program, option, "-r#{native.library}", symbolize_names: true,
                                                                env: { "RUBY_THREAD_TIMESLICE" => "10" })
      [many, *few].each { |it| expect_whole(it) }
      expect(many[:ops].first[:gvl_wait_ns]).to be > 50 * 3_000_000
      # On a busy machine a thread may have no CPU between its own clock and the VM's, in many of the sessions.
      differences = few.map { |it| %i[blocked_ns gvl_wait_ns].map { |state| difference(it, state) } }
      expect(differences.min_by { |it| it.map(&:abs).max }).to match([be_between(0, 150_000), be_within(200_000).of(0)])
      # Quantiles are at most 6 % off. On a busy machine the waits around the median differ, too.
      least, most = many[:waits].sort.values_at(14, 35)
      expect(many[:ops].first[:blocked_p50_ns]).to be_between(0.93 * least, (1.07 * most) + 1_000_000)
      expect_quiet(many, few) if Commands::LONG
    end
  end

  # Unless the machine is busy all the time, the kernel's own delay is short in some of them: 2 ms were asked for.
  def expect_quiet(many, few)
    expect([many, *few].map { |it| it[:ops].first[:blocked_p50_ns] }.min).to be_between(2_000_000, 2_300_000)
    expect(few.map { |it| it[:ops].first[:blocked_ns] / 5 }.min).to be_between(2_000_000, 2_300_000)
    expect(median(few.map { |it| difference(it, :blocked_ns) })).to be_between(0, 150_000)
  end
end
