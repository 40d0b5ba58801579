# frozen_string_literal: true

# Programs that may have little memory.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  # Of address space; each thread has 8 MB of it as its stack.
  (Faults.kinds(3) - %w[threads]).each do |kind|
    it "is as without rperf in 500 MB (#{kind})" do
      expect_same(kind, before: Faults.shell("ulimit -v 500000"))
    end
  end

  it "has its NoMemoryError as without rperf" do
    program = program_of(<<~RUBY)
      require "etc"
      # Half a text is left when there is no room for one more: Ruby needs some to raise an error.
      used = File.read("/proc/self/statm").to_i * Etc.sysconf(Etc::SC_PAGESIZE)
      Process.setrlimit(:AS, used + 475_000_000)
      texts = []
      begin
        texts << ("x" * 50_000_000) while texts.size < 1000
      rescue NoMemoryError => e
        texts.clear
        work(0.3)
        e.class
      end
    RUBY
    expect_same(program)
  end
end
