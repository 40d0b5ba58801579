# frozen_string_literal: true

# The memory of a session is bounded, whatever the program does.
RSpec.describe "the memory of a session", vm: true do
  def profile(name, program, *arguments)
    script = write_file(name, program)
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", script, path_to("p.pb.gz"), *arguments)
    expect(outcome.stderr).to eq("")
    [outcome.stdout.split.map(&:to_i), read_profile(path_to("p.pb.gz"))]
  end

  it "lets go of methods that were defined anew, and keeps their time" do
    (made, kept, duration), data = profile("redefine.rb", <<~'RUBY')
      require "rperf"
      require "objspace"
      METHODS = 400
      CHAIN = Array.new(METHODS) { |i| "def chain#{i} = #{i + 1 < METHODS ? "chain#{i + 1}" : "spin"}" }.join("\n")
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

      def spin
        stop = now + 1_000_000
        nil while now < stop
      end

      rounds = 0
      before = ObjectSpace.count_imemo_objects[:imemo_iseq]
      Rperf.start(mode: :wall, frequency: 10_000, output: ARGV[0])
      began = now
      # More frames than an epoch holds.
      while rounds < 150
        Object.class_eval(CHAIN, "chain.rb")
        chain0
        rounds += 1
      end
      duration = now - began
      GC.start
      kept = ObjectSpace.count_imemo_objects[:imemo_iseq] - before
      Rperf.stop
      puts rounds * METHODS, kept, duration
    RUBY
    expect(made).to eq(60_000)
    expect(kept).to be < made * 0.7
    expect(data[:samples].sum { |row| row[1] }).to be_within(duration * 0.2).of(duration)
    expect(data[:samples].map { |row| row[0].size }.max).to be > 400
    expect(data.values_at(:truncated_samples, :dropped_samples)).to eq([0, 0])
  end

  # An emulator keeps memory of its own for each thread.
  it "doesn't grow with the number of threads that have come and gone", emulated: false do
    pairs = Commands.times(16_000) / 4
    memory, = profile("threads.rb", <<~'RUBY', pairs.to_s)
      require "rperf"
      def memory = File.exist?("/proc/self/status") ? File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1].to_i : 0
      Rperf.start(mode: :wall, frequency: 10_000, output: ARGV[0])
      2_000.times { Array.new(2) { Thread.new { [1].sum } }.each(&:join) }
      puts memory
      4.times do
        ARGV[1].to_i.times { Array.new(2) { Thread.new { [1].sum } }.each(&:join) }
        puts memory
      end
      Rperf.stop
    RUBY
    # At 500 bytes each, the threads would take one kB for a pair, in every stretch. A table that has
    # become larger takes its memory in one.
    growth = memory.each_cons(2).map { |before, after| after - before }
    expect(growth.min).to be < pairs * 3 / 8
  end
end
