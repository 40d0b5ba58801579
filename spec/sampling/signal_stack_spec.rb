# frozen_string_literal: true

require "etc"
require "json"
require_relative "../../bench/support/c_extension"

# Handlers run on the thread's signal stack, which nothing guards, and which a program may make itself.
RSpec.describe "a signal stack of the program's own", vm: true, if: Gem::Platform.local.os == "linux" do
  native = Bench::CExtension.new("spec_native", File.expand_path("../native", __dir__))

  # `_SC_MINSIGSTKSZ`, which Etc has no name for.
  smallest = 249

  before { expect(native.missing).to be_nil }

  def outcome_with(library, size)
    code = <<~RUBY
      require "json"
      require "rperf"
      require #{library.inspect}
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def work = (now + 0.5).then { |deadline| 1000.times { |number| number.to_s } while now < deadline }
      SpecNative.signal_stack(#{size})
      Rperf.start(mode: :wall, frequency: 5000)
      work
      profile = Rperf.stop
      work = profile[:samples].sum { |stack, weight, *| stack.any? { |_, name| name == "Object#work" } ? weight : 0 }
      puts JSON.generate({ overwritten: SpecNative.overwritten, work: work / 1e9, at_ticks: profile[:tick_stacks] })
    RUBY
    outcome = run(ruby, "-W0", "-I#{Commands::ROOT}/lib", "-e", code)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  # Where the CPU has matrices (AMX), the system asks for 8 KB for them, whether or not the program uses them: without
  # them there is room.
  at_ticks = Etc.sysconf(smallest) > 8192 ? (0..) : 0

  # The smallest one that the system takes is larger where vectors are wider.
  [0, 512, 2048, 4096].each do |more|
    it "is not overrun with #{more} bytes more than the system asks for" do
      size = [Etc.sysconf(smallest), 2048].max + more
      expect(outcome_with(native.library, size)).to match(overwritten: 0, work: be > 0.2, at_ticks:)
    end
  end

  # None of ours is called on it. For smaller ones the system ends the program as it is to call a handler.
  it "isn't used if it is too small for any handler" do
    # The system refuses smaller ones itself.
    sizes = [2048, 3000, Etc.sysconf(smallest) - 300].select { |size| size.between?(2048, Etc.sysconf(smallest)) }
    skip "the system refuses stacks that are too small" if sizes.empty? || !RUBY_PLATFORM.start_with?("x86_64")
    sizes.each do |size|
      expect(outcome_with(native.library, size)).to match(overwritten: 0, work: be > 0.2, at_ticks: 0)
    end
  end

  it "has stacks at ticks where it is large" do
    expect(outcome_with(native.library, 1 << 16)).to match(overwritten: 0, work: be > 0.2, at_ticks: be > 100)
  end
end
