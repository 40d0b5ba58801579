# frozen_string_literal: true

require "json"
require_relative "../bench/support/c_extension"
require_relative "support/compilers"
require_relative "system_calls/sqlite_calls"

# A profiled program's system calls are those of the program alone: what they return, their errors, their times. Only
# with capture: :tick there is one difference, of extensions that begin to wait with the GVL held just as a tick
# comes. See docs/signals.md.
RSpec.describe "the system calls of a profiled program" do
  extension = Bench::CExtension.new("spec_native", File.expand_path("native", __dir__))
  alone = nil

  before { expect(extension.missing).to be_nil }

  def results(extension, flags = [], options = nil)
    program = File.join(__dir__, "system_calls", "program.rb")
    command = [ruby, *flags, "-W0", "-I#{Commands::ROOT}/lib", program, extension.library]
    outcome = run(*command, *(options && JSON.generate(options)))
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  # The results without their times, which are checked.
  def values(calls)
    calls.transform_values do |call|
      [call].flatten.map do |timed|
        expect(timed[:elapsed]).to be_between(timed[:least] - 0.001, timed[:least] + 10), call.inspect
        timed[:result]
      end
    end
  end

  def all_values(results) = results.transform_values { |parts| parts.transform_values { |calls| values(calls) } }

  variants = { "in wall mode" => [[], :wall] }
  Compilers::FLAGS.each { |compiler, flag| variants["under #{compiler}, in cpu mode"] = [[flag], :cpu] }

  variants.each do |name, (flags, mode)|
    it "are the same with capture: :safepoint #{name}" do
      alone ||= all_values(results(extension))
      expect(all_values(results(extension, flags, { mode:, capture: :safepoint }))).to eq(alone)
    end

    it "are the same with capture: :tick #{name}, but for an extension's that begin to wait at a tick" do
      alone ||= all_values(results(extension))
      profiled = results(extension, flags, { mode:, capture: :tick })
      profiled.each do |where, parts|
        %i[ruby libraries openssl].each { |part| expect(values(parts[part])).to eq(alone[where][part]) }
        expect(shares_of_eintr(parts[:holding_gvl])).to match(nanosleep: be > 0, poll: be > 0, read: 0)
        # Only if a tick comes as the GVL is given up; else it would be all, as above.
        expect(shares_of_eintr(parts[:extension])).to match(nanosleep: be < 0.5, poll: be < 0.5, read: 0)
      end
    end
  end

  describe "of SQLite, which waits for a lock in usleep with the GVL held" do
    before { skip("SQLite's library isn't there") unless SQLiteCalls::LIBRARY }

    # What comes of a wait of 0.5 s, and whether that comes early. What needs no wait works.
    def wait_for_lock(flags, options)
      program = File.join(__dir__, "system_calls", "sqlite_program.rb")
      command = [ruby, *flags, "-W0", "-I#{Commands::ROOT}/lib", program, in_folder("database"), "500"]
      outcome = run(*command, *(options && JSON.generate(options)))
      expect([outcome.status, outcome.stderr]).to match([be_success, ""])
      result, elapsed, others = JSON.parse(outcome.stdout)
      expect([result, others]).to eq([SQLiteCalls::BUSY, [SQLiteCalls::DONE]])
      elapsed < 0.499 ? :early : :in_time
    end

    variants.each do |name, (flags, mode)|
      it "wait as long as they are to #{name}" do
        waits = [nil, { mode:, capture: :safepoint }, { mode: }].map { |options| wait_for_lock(flags, options) }
        expect(waits).to eq(%i[in_time in_time in_time])
      end
    end
  end
end
