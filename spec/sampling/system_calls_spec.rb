# frozen_string_literal: true

require "json"
require_relative "../../bench/support/c_extension"
require_relative "../support/compilers"
require_relative "../system_calls/sqlite_calls"

# A profiled program's system calls are those of the program alone: what they return, their errors, their times. With
# capture: :tick there is one exception: an extension's call may end early if it begins in the very moment of a tick.
# See docs/internals/signals.md.
RSpec.describe "the system calls of a profiled program", vm: true do
  extension = Bench::CExtension.new("spec_native", File.expand_path("../native", __dir__))
  alone = nil

  before { expect(extension.missing).to be_nil }

  def results(extension, flags = [], options = nil)
    program = File.join(__dir__, "../system_calls", "program.rb")
    command = [ruby, *flags, "-W0", "-I#{Commands::ROOT}/lib", program, extension.library]
    outcome = run(*command, *(options && JSON.generate(options)))
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  # The results without their times, which are checked.
  def values(calls)
    calls.transform_values do |call|
      [call].flatten.map do |timed|
        at_most = timed[:least] + (10 * Commands::SLOWNESS)
        expect(timed[:elapsed]).to be_between(timed[:least] - 0.001, at_most), call.inspect
        timed[:result]
      end
    end
  end

  # A call that begins in the very moment of a tick can be ended by it, at 10,000 ticks per second once in some runs
  # (docs/internals/signals.md). A real difference fails again.
  def at_most_by_chance
    yield
  rescue RSpec::Expectations::ExpectationNotMetError
    yield
  end

  def all_values(results) = results.transform_values { |parts| parts.transform_values { |calls| values(calls) } }

  # Of calls of the extension, which are right in all else.
  def shares_of_eintr(calls)
    calls.to_h do |name, all|
      ended, whole = all.partition { |call| call[:result].first(2) == [-1, Errno::EINTR::Errno] }
      expect(values({ name => whole })[name] - [[name == :read ? 1 : 0, 0, 0]]).to eq([])
      expect(ended).to all(satisfy { |call| slept_or_left(call) >= call[:least] - 0.001 }) if name == :nanosleep
      [name, ended.size.fdiv(all.size)]
    end
  end

  def slept_or_left(call) = call[:elapsed] + (call[:result].last / 1e9)

  variants = { "in wall mode" => [[], :wall] }
  Compilers::FLAGS.each { |compiler, flag| variants["under #{compiler}, in cpu mode"] = [[flag], :cpu] }

  # No signal comes, whatever has compiled the program: interpreted code stands for all.
  it "are the same with capture: :safepoint" do
    alone ||= all_values(results(extension))
    expect(all_values(results(extension, [], { mode: :wall, capture: :safepoint }))).to eq(alone)
  end

  variants.each do |name, (flags, mode)|
    it "are the same with capture: :tick #{name}, but for an extension's that begin at a tick",
       if: RUBY_PLATFORM.include?("linux") do
      alone ||= all_values(results(extension))
      at_most_by_chance do
        profiled = results(extension, flags, { mode:, capture: :tick })
        profiled.each do |where, parts|
          %i[ruby libraries openssl].each { |part| expect(values(parts[part])).to eq(alone[where][part]) }
          # Some 50 ticks come in each call: it would be all, if those could end it that come while it waits.
          %i[extension holding_gvl].each do |part|
            expect(shares_of_eintr(parts[part])).to match(nanosleep: be < 0.5, poll: be < 0.5, read: 0)
          end
        end
      end
    end
  end

  describe "of SQLite, which waits for a lock in usleep with the GVL held" do
    before { skip("SQLite's library isn't there") unless SQLiteCalls::LIBRARY }

    # How long a wait of 0.5 s for a lock takes, in seconds. Work without a wait succeeds.
    def wait_for_lock(flags, options)
      program = File.join(__dir__, "../system_calls", "sqlite_program.rb")
      command = [ruby, *flags, "-W0", "-I#{Commands::ROOT}/lib", program, path_to("database"), "500"]
      outcome = run(*command, *(options && JSON.generate(options)))
      expect([outcome.status, outcome.stderr]).to match([be_success, ""])
      result, elapsed, others = JSON.parse(outcome.stdout)
      expect([result, others]).to eq([SQLiteCalls::BUSY, [SQLiteCalls::DONE]])
      elapsed
    end

    variants.each do |name, (flags, mode)|
      it "wait as long as they are to #{name}" do
        expect([nil, { mode:, capture: :safepoint }].map { |it| wait_for_lock(flags, it) }).to all(be >= 0.499)
        # SQLite counts sleeps, up to 0.1 s each. If each ended at the next tick, the wait would be over after 15 ms; a
        # single one may begin in the moment of a tick.
        expect(wait_for_lock(flags, { mode: })).to be >= 0.25
      end
    end
  end
end
