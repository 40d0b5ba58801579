# frozen_string_literal: true

require "spec_helper"
require "zlib"
require_relative "../../bench/support/c_extension"
require_relative "../support/compilers"

# The stack at the tick, and at the safepoint.
RSpec.describe "the capture of stacks", vm: true, alone: true, if: RUBY_PLATFORM.include?("linux") do
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

  native = Bench::CExtension.new("spec_native", File.expand_path("../native", __dir__))

  define_method(:native) { native }

  define_method(:leaves) do |script, *options, **run_options|
    path = write_file("leaves.rb", "#{program}\n#{script}")
    outcome = run(ruby, *options, "-I#{Commands::ROOT}/lib", path, **run_options)
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

  describe "beside other Ractors" do
    it "is at the tick, while they run and when they are gone" do
      alone, beside, after, ticks, jobs = leaves(<<~RUBY, "--yjit", "-W0")
        Rperf.start(mode: :cpu)
        work(0.3)
        puts Rperf.snapshot(clear: true)[:tick_stacks]
        ractor = Ractor.new { Ractor.receive }
        work(0.3)
        puts Rperf.snapshot(clear: true)[:tick_stacks]
        ractor.send(1)
        ractor.respond_to?(:value) ? ractor.value : ractor.take
        sleep 0.01 until Ractor.count == 1
        work(0.3)
        puts Rperf.stop.values_at(:tick_stacks, :trigger_count, :safepoint_stacks)
      RUBY
      expect([alone, beside, after]).to all(be > 50)
      expect(jobs).to be < ticks * 0.3
    end

    # In Ruby 3.4 all hooks on events of the main Ractor fall silent as a Ractor's object is freed.
    %i[tick safepoint].each do |capture|
      it "sees all methods and collections after a Ractor was freed, at the #{capture}" do
        busy, collecting, samples = leaves(<<~RUBY, "-W0")
          def collect(times) = times.times { GC.start }
          data = Rperf.start(mode: :wall, capture: :#{capture}) do
            3.times { Ractor.new { 1 }.then { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take } }
            2.times { GC.start }
            work(1)
            collect(30)
          end
          sum = ->(rows) { (rows.sum { |row| row[1] } / 1e6).to_i }
          in_gc, others = data[:samples].partition { |row| row[0].first.last.start_with?("[GC") }
          puts sum[others.select { |row| row[0].any? { |frame| frame.last == "Object#work" } }]
          puts sum[in_gc.select { |row| row[0].any? { |frame| frame.last == "Object#collect" } }]
          puts data[:sampling_count]
        RUBY
        expect(busy).to be_between(950, 2000)
        expect(collecting).to be_positive
        expect(samples).to be > 20
      end
    end

    it "is at the tick in sections that begin after them" do
      stacks, jobs = leaves(<<~RUBY, "-W0")
        Rperf.start(mode: :cpu, defer: true)
        ractor = Ractor.new { Ractor.receive }
        Rperf.profile { work(0.3) }
        puts Rperf.stop.values_at(:tick_stacks, :safepoint_stacks)
        ractor.send(1)
      RUBY
      expect(stacks).to be > [50, jobs].max
    end
  end

  it "works without YJIT, and puts C methods below their callers" do
    stacks = Rperf.start(mode: :cpu) { spin(0.5) }[:samples].map { |row| row[0].map(&:last) }
    calls = stacks.select { |stack| stack.first == "Process.clock_gettime" }
    expect(calls).not_to be_empty
    expect(calls.map { |stack| stack[1] }.uniq).to all(match(/spin/))
  end

  # The frame of a compiled method has no program counter at first, or an old one. If a C method that the interpreter
  # called was in its place, the VM leaves it out.
  Compilers::FLAGS.each_value do |flag|
    it "doesn't give the time of compiled methods to their callers, and learns each once, with #{flag}" do
      compiled, caller, jobs, learned = leaves(<<~'RUBY', flag)
        def compiled(turns)
          turn = 0
          turn += 1 while turn < turns
        end

        # Interpreted calls of C methods, whose frames are where that of the compiled one is to be.
        def calling(turns)
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
          compiled(turns)
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        200.times { calling(1000) }
        # Longer than a method takes to be compiled.
        sleep 0.2
        data = Rperf.start(mode: :cpu) do
          ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1.5
          send(:calling, 100_000) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        end
        puts(leaves(data).values_at("Object#compiled", "Object#calling").map(&:to_i))
        puts(data.values_at(:safepoint_calls, :hidden_frames))
      RUBY
      expect(compiled).to be > 100
      expect(caller).to be < (compiled * 0.05)
      expect(learned).to be <= 3
      expect(jobs).to be <= 40
    end

    # A block, in a method that begins on the same line, and outside of methods.
    { "of methods" => "def outer(turns) = yielder { count(turns) }", "outside of them" => "" }.each do |where, outer|
      it "doesn't give the time of blocks #{where} to those who yield to them, with #{flag}" do
        yielder, jobs, caller = leaves(<<~RUBY, flag)
          def yielder = yield
          #{outer.sub("count(turns)", "turn = 0; turn += 1 while turn < turns")}
          nested = [[[[[[1]]]]]]
          data = nil
          turns, round = 10, 0
          ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
          while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
            if (round += 1) == 300
              turns = 100_000
              Rperf.start(mode: :cpu)
              ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
            end
            # Frames of C methods, where those of the blocks are to be.
            nested.inspect
            #{outer.empty? ? "yielder { turn = 0; turn += 1 while turn < turns }" : "outer(turns)"}
          end
          data = Rperf.stop
          times = leaves(data)
          puts times["Object#yielder"].to_i, data[:safepoint_calls], times["Object#outer"].to_i
        RUBY
        expect([yielder, caller]).to all(be < 100)
        expect(jobs).to be < 50
      end
    end

    it "leaves long calls in compiled code, with #{flag}" do
      off, on, jobs = leaves(<<~RUBY, flag)
        def turn(count)
          turn = 0
          turn += 1 while turn < count
        end

        def timed
          began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          turn(10_000_000)
          (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1e6
        end

        50.times { turn(1000) }
        off, on = [], []
        jobs = 5.times.sum do
          off << timed
          Rperf.start(mode: :wall) { on << timed }[:safepoint_calls]
        end
        puts off.min.to_i, on.min.to_i, jobs
      RUBY
      # In the interpreter it takes ten times as long and more.
      expect(on).to be < 3 * off
      expect(jobs).to be <= 10
    end
  end

  # Its frames stand under the enclosing method's name, but have another file.
  it "takes evaluated code for no hidden frame" do
    jobs, stacks = leaves(<<~RUBY)
      CODE = Array.new(20) { "number = 0\nnumber += 1 while number < 2_000\n" }.join
      def evaluated = eval(CODE)
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.5
      data = Rperf.start(mode: :cpu) { evaluated while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends }
      puts data.values_at(:safepoint_calls, :tick_stacks)
    RUBY
    expect(stacks).to be > 50
    expect(jobs).to be < 10
  end

  [nil, *Compilers::FLAGS.values].each do |flag|
    it "gives a method its time whose last act is to call a tiny one, #{flag ? "with #{flag}" : "interpreted"}" do
      straight, tiny = leaves(<<~RUBY, flag || "--disable-yjit", env: Commands::INTERRUPTED_ANYWHERE)
        def tiny = nil
        eval("def straight(a)\n" + (["a = (a ^ 21) & 1023"] * 300).join("\n") + "\ntiny\nend")
        def run(seconds)
          ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
          100.times { straight(7) } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        end

        run(0.3)
        data = Rperf.start(mode: :cpu) { run(1) }
        puts(leaves(data).values_at("Object#straight", "Object#tiny").map(&:to_i))
      RUBY
      expect(straight).to be > 100
      expect(tiny).to be < (straight * 0.1)
    end
  end

  it "loses no ticks beside threads that begin" do
    ticks, stacks = leaves(<<~RUBY)
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
      data = Rperf.start(mode: :cpu) do
        while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
          Thread.new { 10.times { |number| number * number } }
          100_000.times { |number| number * number }
        end
      end
      puts(data.values_at(:trigger_count, :tick_stacks))
    RUBY
    # On a busy machine some ticks come while the thread waits for a CPU.
    expect(stacks).to be > (ticks * 0.2)
  end

  # It allocates nothing and switches no threads, so nothing else empties the log.
  it "asks for the callback when its log is nearly full, and loses nothing" do
    stacks, jobs, sum, duration = leaves(<<~RUBY)
      def down(depth) = depth.zero? ? 1 : down(depth - 1) + 1
      data = Rperf.start(mode: :wall, frequency: 10_000) { 200_000.times { down(100) } }
      main = data[:samples].select { |row| row[2] == 1 }
      puts data.values_at(:tick_stacks, :safepoint_calls), main.sum { |row| row[1] }, data[:duration_ns]
    RUBY
    expect(jobs).to be_between(1, stacks / 20)
    expect(sum).to be_within(duration * 0.01).of(duration)
  end

  it "keeps samples one by one if told so, in the order of time" do
    data = Rperf.start(mode: :cpu, aggregate: false) { spin(0.3) }
    running = data[:samples].select { |row| row[4].positive? }
    expect(running.map { |row| row[4] }).to all(eq(1))
    # A tick that finds no CPU time since the last one makes no sample.
    stacks = data[:tick_stacks] + data[:safepoint_stacks]
    expect(running.size).to be_between(stacks / 2, stacks + 5)
  end

  it "is told in the profile", alone: false do
    { tick: "capture: tick", safepoint: "capture: safepoint (" }.each do |capture, expected|
      path = path_to("#{capture}.pb.gz")
      Rperf.start(output: path, capture:) { spin(0.01) }
      expect(Zlib.gunzip(File.binread(path))).to include(expected.b)
    end
  end

  # While an environment moves to the heap, the VM's chain of them leads nowhere.
  it "survives blocks that become procs, at the highest frequency", alone: false do
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

  it "lets faults of the program be what they are", alone: false do
    ["Process.kill(:SEGV, $$); sleep", "Process.kill(:BUS, $$); sleep"].each do |crash|
      outcomes = ["Rperf.start(capture: :tick)", "nil"].map do |first|
        run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "#{first}; #{crash}")
      end
      expect(outcomes.map { |it| it.status.termsig }.uniq.size).to eq(1)
      expect(outcomes.map(&:stderr)).to all include("[BUG]")
    end
  end

  it "lets faults in C code be Ruby's to report, whole", alone: false do
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

  # The emulator has a stack of its own, and faults.
  it "lets an overflow of the machine's stack be an exception", alone: false, emulated: false do
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

  # Emulated, ten thousand samples a second of stacks as deep as these leave no time for anything else.
  it "lets a stack overflow be an exception", alone: false, emulated: false do
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

  it "refuses to share SIGURG with the program", alone: false do
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
