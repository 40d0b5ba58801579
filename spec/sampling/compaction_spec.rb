# frozen_string_literal: true

# Collections that compact: the VM takes the right to read from pages whose objects move, and its handler of faults
# gives it back.
RSpec.describe "a collection that compacts", vm: true do
  # Classes have subclasses, methods and code in other pages: these are read as they are freed.
  program = <<~'RUBY'
    GC.auto_compact = true
    BASE = Class.new { def hello = 1 }
    def objects
      Array.new(100) do |n|
        kind = Class.new(Class.new(BASE))
        kind.class_eval("def code_#{n} = hello + #{n}")
        kind.new.tap { |object| object.define_singleton_method(:own) { n } }
      end
    end
    kept = []
    statuses = 10.times.map do |n|
      kept << objects.select.with_index { |_, index| index % 3 == n % 3 }
      kept.shift if kept.size > 5
      GC.stress = true
      pid = fork { GC.stress = false; exit!(7) }
      GC.stress = false
      Process.wait2(pid)[1].then { |status| status.exitstatus || status.termsig }
    end
    print JSON.generate(statuses:, compactions: GC.stat(:compact_count), faults: GC.stat(:read_barrier_faults))
  RUBY

  {
    "is sampled" => "Rperf.start(mode: :wall)",
    "is traced" => "Rperf.start(mode: :trace)"
  }.each do |state, start|
    it "does no harm as a program forks that #{state}" do
      seen = told("#{start}\n#{program}Rperf.stop", limit: 240)
      # Ruby 4.1 hardly reads such pages.
      faults = RUBY_VERSION < "4.1" ? be_positive : be >= 0
      expect(seen).to match("statuses" => [7] * 10, "compactions" => be > 10, "faults" => faults)
    end
  end
end
