# frozen_string_literal: true

require "spec_helper"
require_relative "../bench/support/c_extension"

# The stack at the tick, and at the safepoint.
RSpec.describe "the capture of stacks", if: RUBY_PLATFORM.include?("linux") do
  # Prints the times of the leaves, in ms.
  program = <<~'RUBY'
    require "rperf"
    TEXT = "abc" * 20_000
    def count(text) = text.count("a")

    def work(seconds)
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        20.times { count(TEXT) }
      end
    end

    def leaves(data)
      data[:samples].each_with_object(Hash.new(0)) { |row, sums| sums[row[0].first.last] += row[1] / 1e6 }
    end
  RUBY

  native = Bench::CExtension.new("spec_native", File.expand_path("native", __dir__))

  define_method(:native) { native }

  define_method(:leaves) do |script, *options|
    path = write_file("leaves.rb", "#{program}\n#{script}")
    outcome = run(ruby, *options, "-I#{Commands::ROOT}/lib", path)
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    outcome.stdout.split.map(&:to_i)
  end

  report = 'puts(leaves(data).values_at("String#count", "Object#count").map(&:to_i))'

  %i[cpu wall].each do |mode|
    it "gives C methods of compiled code their time in #{mode} mode" do
      c_method, caller = leaves(<<~RUBY, "--yjit")
        work(0.3)
        data = Rperf.start(mode: :#{mode}) { work(1) }
        #{report}
      RUBY
      expect(c_method).to be > [10, 3 * caller].max
    end
  end

  it "is at the safepoint if told so, where C methods of compiled code lose their time" do
    c_method, caller = leaves(<<~RUBY, "--yjit")
      work(0.3)
      data = Rperf.start(mode: :cpu, capture: :safepoint) { work(0.5) }
      #{report}
    RUBY
    expect(c_method).to be < caller
  end

  it "begins with a session, goes on when YJIT is enabled, and ends with it" do
    c_method, caller, *handled = leaves(<<~RUBY, "--disable-yjit")
      handled = -> { File.read("/proc/self/status")[/SigCgt:\\s+(\\h+)/, 1].hex[Signal.list["URG"] - 1] }
      seen = [handled.call]
      data = Rperf.start(mode: :cpu) do
        seen << handled.call
        RubyVM::YJIT.enable
        seen << handled.call
        work(1)
      end
      seen << handled.call
      #{report}
      puts seen
    RUBY
    expect(c_method).to be > [10, 3 * caller].max
    expect(handled).to eq([0, 1, 1, 0])
  end

  it "is at the tick unless told otherwise, and at the safepoint where there is no signal" do
    taken = [{}, { capture: nil }, { capture: :tick }, { capture: :safepoint }, { signal: false }].map do |options|
      Rperf.start(mode: :cpu, **options) { spin(0.2) }[:tick_stacks].positive?
    end
    expect(taken).to eq([true, true, true, false, false])
  end

  # Nothing tells of the collections of other Ractors.
  it "ends for a session once another Ractor runs, and is there in the next" do
    alone, before, after, later = leaves(<<~RUBY, "--yjit", "-W0")
      Rperf.start(mode: :cpu)
      work(0.3)
      puts Rperf.snapshot(clear: true)[:tick_stacks]
      ractor = Ractor.new { 1 }
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      puts Rperf.snapshot[:tick_stacks]
      work(0.3)
      puts Rperf.stop[:tick_stacks]
      sleep 0.01 until Ractor.count == 1
      puts(Rperf.start(mode: :cpu) { work(0.3) }[:tick_stacks])
    RUBY
    expect([alone, later]).to all(be_positive)
    expect(after).to eq(before)
  end

  it "works without YJIT, and puts C methods below their callers" do
    stacks = Rperf.start(mode: :cpu) { spin(0.5) }[:samples].map { |row| row[0].map(&:last) }
    calls = stacks.select { |stack| stack.first == "Process.clock_gettime" }
    expect(calls).not_to be_empty
    expect(calls.map { |stack| stack[1] }.uniq).to all(match(/spin/))
  end

  # The frame of a compiled method has no program counter at first, or an old one. If a C method that the interpreter
  # called was in its place, the VM leaves it out.
  it "doesn't give the time of compiled methods to their callers" do
    compiled, caller = leaves(<<~'RUBY', "--yjit")
      def compiled(turns)
        turn = 0
        turn += 1 while turn < turns
      end

      OBJECTS = [1, "a", :b, 1.5, nil, true, [], {}, 1..2, Object.new, Class, 2**70, 1r, 1i, /a/, false, Time.now, proc {}]
      def calling(seconds)
        ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        turn = 0
        while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
          OBJECTS[turn = (turn + 1) % OBJECTS.size].hash
          compiled(3_000)
        end
      end

      calling(0.5)
      data = Rperf.start(mode: :cpu) { calling(1.5) }
      puts(leaves(data).values_at("Object#compiled", "Object#calling").map(&:to_i))
    RUBY
    expect(compiled).to be > 20
    expect(caller).to be < (compiled * 0.02) + 2
  end

  # While an environment moves to the heap, the VM's chain of them leads nowhere.
  it "survives blocks that become procs, at the highest frequency" do
    sampled, = leaves(<<~'RUBY', "--yjit")
      def escape(text)
        text =~ /b/
        [1].each { |outer| [2].each { |inner| proc { outer + inner } } }
      end
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        1000.times { escape("abc") } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
      end
      puts data[:sampling_count]
    RUBY
    expect(sampled).to be > 100
  end

  it "lets faults of the program be what they are" do
    ["Process.kill(:SEGV, $$); sleep", "Process.kill(:BUS, $$); sleep"].each do |crash|
      outcomes = ["Rperf.start(capture: :tick)", "nil"].map do |first|
        run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "#{first}; #{crash}")
      end
      expect(outcomes.map { |it| it.status.termsig }.uniq.size).to eq(1)
      expect(outcomes.map(&:stderr)).to all include("[BUG]")
    end
  end

  it "lets faults in C code be Ruby's to report, whole" do
    expect(native.missing).to be_nil
    outcomes = ["Rperf.start(capture: :tick)", "nil"].map do |first|
      crash = "#{first}; [1] * 1_000_000; SpecNative.fault"
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-r#{native.library}", "-e", crash)
    end
    expect(outcomes.map { |it| it.status.termsig }.uniq.size).to eq(1)
    # The report's parts, from the first to the last.
    parts = ["[BUG] Segmentation fault", "* Loaded script", "* Loaded features", "* Process memory map"]
    expect(outcomes.map { |it| it.stderr.scan(Regexp.union(parts)) }).to all(eq(parts))
  end

  it "lets an overflow of the machine's stack be an exception" do
    names = leaves(<<~RUBY, "--yjit")
      nested = []
      300_000.times { nested = [nested] }
      overflow = lambda do
        Marshal.dump(nested)
      rescue SystemStackError
        puts 1
      end
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        3.times { overflow.call }
        Thread.new(&overflow).join
        Fiber.new(&overflow).resume
      end
    RUBY
    expect(names).to eq([1] * 5)
  end

  it "lets a stack overflow be an exception" do
    names = leaves(<<~RUBY, "--yjit")
      def forever(n) = forever(n + 1)
      def forever_in_c(&block) = [1].each { forever_in_c(&block) }
      data = Rperf.start(mode: :wall, frequency: 10_000) do
        20.times do
          forever(0)
        rescue SystemStackError
          begin
            forever_in_c { nil }
          rescue SystemStackError
            puts 1
          end
        end
      end
    RUBY
    expect(names).to eq([1] * 20)
  end

  it "refuses to share SIGURG with the program" do
    script = 'trap("URG") { }; Rperf.start(capture: :tick)'
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", script)
    expect(outcome.stderr).to match(/can't start profiling with capture: :tick: .*SIGURG/)
    expect(outcome.status.exitstatus).to eq(1)
  end

  it "is at the safepoint, unless told otherwise, if the program has a handler of its own for SIGURG" do
    taken, sampled = leaves(<<~RUBY)
      trap("URG") { raise "of the program" }
      data = Rperf.start(mode: :cpu) { work(0.3) }
      puts data.values_at(:tick_stacks, :sampling_count)
    RUBY
    expect([taken, sampled]).to match([0, be_positive])
  end
end
