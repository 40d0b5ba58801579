# frozen_string_literal: true

require "json"
require_relative "../../bench/support/c_extension"

# A signal would end some system calls early, so a tick sends none to a thread that waits. Where the system doesn't say
# whether one does, it is taken to wait.
RSpec.describe "the sleeps of a profiled program", vm: true, if: Gem::Platform.local.os == "linux" do
  native = Bench::CExtension.new("spec_native", File.expand_path("../native", __dir__))

  before { expect(native.missing).to be_nil }

  # Sleeps with the GVL, says how many sleeps ended early, and computes for a while.
  def program(library, before:)
    write_file("sleeps.rb", <<~RUBY)
      require "json"
      require "rperf"
      require #{library.inspect}
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def work = (now + 1).then { |deadline| 1000.times { |number| number.to_s } while now < deadline }
      #{before}
      Rperf.start(mode: :wall, frequency: 1000)
      sleeps = Array.new(20) { SpecNative.nanosleep(50_000_000, true).first }
      work
      profile = Rperf.stop
      methods = profile[:samples].sum { |stack, weight, *| stack.any? { |_, name| name == "Object#work" } ? weight : 0 }
      puts JSON.generate({ ended_early: sleeps.count(-1), work: methods / 1e9, at_ticks: profile[:tick_stacks] })
    RUBY
  end

  def outcome_of(command, stderr: "")
    outcome = run(*command)
    expect([outcome.status, outcome.stderr]).to match([be_success, stderr])
    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  # Of 20. One that begins at the very moment of a tick can end by it (docs/guide/signals.md).
  def few = be <= 4

  def ruby_of(path) = [ruby, "-W0", "-I#{Commands::ROOT}/lib", path]

  it "end in time while no further file can be opened" do
    path = program(native.library, before: <<~RUBY)
      Process.setrlimit(:NOFILE, 64)
      FILES = []
      begin
        FILES << File.open("/dev/null") while true
      rescue Errno::EMFILE
        # There is room for none of ours.
      end
    RUBY
    expect(outcome_of(ruby_of(path))).to include(ended_early: few, work: be_between(0.5, 1.5))
  end

  it "end in time where /proc is missing, and stacks are taken at safepoints" do
    path = program(native.library, before: "")
    hide = 'mount -t tmpfs none /proc && exec "$@"'
    # Without /proc the loader can't tell where Ruby's executable is, and its library beside it.
    libraries = "LD_LIBRARY_PATH=#{RbConfig::CONFIG.fetch("libdir")}"
    command = ["env", libraries, "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hide, "sh"]
    skip "no namespaces of its own for a user" unless run(*command, "true").status.success?

    expect(outcome_of(command + ruby_of(path))).to match(ended_early: 0, work: be_between(0.5, 1.5), at_ticks: 0)
  end
end
