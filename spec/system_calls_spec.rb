# frozen_string_literal: true

require "json"
require_relative "../bench/support/c_extension"

# A profiled program's system calls are those of the program alone: what they return, their errors, their times. Only
# with capture: :tick there is one difference, of extensions that hold the GVL in a call that a signal ends.
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

    it "are the same with capture: :tick #{name}, but for an extension's that hold the GVL at a tick" do
      alone ||= all_values(results(extension))
      profiled = results(extension, flags, { mode:, capture: :tick })
      profiled.each do |where, parts|
        expect(values(parts[:ruby])).to eq(alone[where][:ruby])
        expect(shares_of_eintr(parts[:holding_gvl])).to match(nanosleep: be > 0, poll: be > 0, read: 0)
        # Only if a tick comes as the GVL is given up.
        expect(shares_of_eintr(parts[:extension])).to match(nanosleep: be <= 0.2, poll: be <= 0.2, read: 0)
      end
    end
  end

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
end
