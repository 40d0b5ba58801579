# frozen_string_literal: true

# Signals of others, and programs that are stopped.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  # Sends signals to each thread in turn for as long as there is one.
  def flood(pid, *signals)
    code = File.join(Commands::ROOT, "spec/faults/flood.rb")
    system(ruby, "-W0", code, pid.to_s, *signals.map { |name| Signal.list.fetch(name).to_s }, exception: true)
  end

  # Ruby handles signals without SA_RESTART. With a port there is one more thread of rperf's.
  handled = "%i[USR1 CHLD].each { |name| trap(name) { nil } }\nRperf.listen if defined?(Rperf)"

  Faults.kinds(4).each do |kind|
    it "is as without rperf while each of its threads gets thousands of signals (#{kind})" do
      expect_same(kind, inside: handled) { |pid,| flood(pid, "USR1", "CHLD") }
    end
  end

  Faults.kinds(0).each do |kind|
    it "is as without rperf when it was stopped for a while, and again and again (#{kind})" do
      lefts = expect_same(kind) do |_, leader|
        [0.5, *[0.001] * (Commands::LONG ? 1000 : 200)].each do |seconds|
          Process.kill(:STOP, -leader)
          sleep(seconds)
          Process.kill(:CONT, -leader)
          sleep(0.0005)
        end
      rescue Errno::ESRCH
        nil # It has ended.
      end
      # No ticks come later for those that there weren't.
      lefts.each { |left| expect(left.profile[:trigger_count]).to be <= (left.lived * 1100) + 50 }
    end
  end

  # What rperf itself takes for its ticks (docs/guide/signals.md).
  own = %w[URG].map { |name| Signal.list.fetch(name) } + [42]
  # Nothing handles them, and glibc keeps two for itself.
  others = [Signal.list.fetch("KILL"), Signal.list.fetch("STOP"), 32, 33]

  it "ends, stops and goes on by each signal as without rperf" do
    program = program_of(<<~RUBY)
      # A line for each, so that a difference says which it was.
      (1..64).to_a.difference(#{own + others}).map do |number|
        pid = fork do
          Process.setrlimit(:CORE, 0)
          $stderr.reopen(File::NULL)
          Process.kill(number, Process.pid)
          Kernel.sleep(0.1)
          exit!(3)
        end
        status = Process.wait2(pid, Process::WUNTRACED).last
        if status.stopped?
          Process.kill(:KILL, pid)
          Process.wait(pid)
        end
        "signal \#{number}: \#{status.stopped? ? "stopped" : status.exitstatus || -status.termsig}\n"
      end.join
    RUBY
    expect_same(program, is_whole: false, lines: 1..3)
  end

  it "has each signal that it handles as without rperf" do
    program = program_of(<<~RUBY)
      received = []
      numbers = (1..64).to_a.difference(#{own + others}).select do |number|
        trap(number) { received << number }
      rescue ArgumentError
        false # Ruby keeps it.
      end
      numbers.each do |number|
        Process.kill(number, Process.pid)
        work(0.003) until received.last == number
      end
      received
    RUBY
    expect_same(program)
  end
end
