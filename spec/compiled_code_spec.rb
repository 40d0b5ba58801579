# frozen_string_literal: true

require "json"
require_relative "support/compilers"

# Nothing of ours throws compiled code away, or makes it leave for the interpreter.
RSpec.describe "compiled code", if: Compilers::FLAGS.key?("YJIT") do
  program = <<~'RUBY'
    require "rperf"
    require "json"

    def work(turns)
      turn = 0
      turn += 1 while turn < turns
      turn
    end

    def short = 10.times { work(20) }

    # What the compiler has counted while the block ran 100 times, once it had nothing more to compile.
    def counted
      keys = %i[invalidation_count side_exit_count]
      before = after = RubyVM::YJIT.runtime_stats
      5.times do
        before = RubyVM::YJIT.runtime_stats
        100.times { yield }
        after = RubyVM::YJIT.runtime_stats
        break if before[:compiled_block_count] == after[:compiled_block_count]
      end
      keys.to_h { |key| [key, after[key] - before[key]] }
    end

    def switching
      Rperf.label(fiber: 1) do
        fiber = Fiber.new { 5.times { Fiber.yield short } }
        5.times { fiber.resume }
      end
    end

    300.times { short }
    seen = {}
    seen["nothing"] = counted { short }
    seen["start and stop"] = counted { Rperf.start(mode: :wall) { short } }
    Rperf.start(mode: :wall)
    seen["a session"] = counted { short }
    seen["labels"] = counted { Rperf.label(request: 1) { short } }
    seen["switches of fibers"] = counted { switching }
    seen["snapshots"] = counted { short && Rperf.snapshot(clear: true) }
    seen["collections"] = counted { short && GC.start(full_mark: false) }
    Rperf.stop
    Rperf.start(mode: :cpu, defer: true)
    seen["sections"] = counted { Rperf.profile(part: 1) { short } }
    jobs = Rperf.stop[:safepoint_calls]
    puts JSON.generate(seen.transform_values { |counts| counts.merge(jobs:) })
  RUBY

  it "is neither thrown away nor left, whatever a session does" do
    outcome = run(ruby, "--yjit", "--yjit-stats=quiet", "-I#{Commands::ROOT}/lib", write_file("counted.rb", program))
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    seen = JSON.parse(outcome.stdout, symbolize_names: true)
    expect(seen.size).to eq(8)
    # Code that has just been compiled is left now and then, where it was not expected to come.
    expect(seen.values).to all(include(invalidation_count: 0, side_exit_count: be < 30, jobs: be < 10))
  end
end
