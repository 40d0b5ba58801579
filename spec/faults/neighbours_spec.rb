# frozen_string_literal: true

# Other parts of a program that use timers and signals as rperf does.
RSpec.describe "Beside a session of rperf", **Faults::MARKS do
  include Faults

  head = <<~RUBY
    def cpu(clock = Process::CLOCK_THREAD_CPUTIME_ID) = Process.clock_gettime(clock)
    def work(seconds) = (cpu + seconds).then { |ends| 100.times(&:to_s) while cpu < ends }
    def weight(profile)
      profile[:samples].sum { |frames, weight,| frames.any? { |it| it[1] == "Object#work" } ? weight : 0 } / 1e9
    end
  RUBY
  define_method(:told_with_native) do |code|
    told("#{head}#{code}", "-W0", "-r#{native_library}", symbolize_names: true)
  end

  it "a profiler with setitimer and SIGPROF has as many signals as alone, and rperf has its samples", alone: true do
    results = told_with_native(<<~RUBY)
      def signals
        SpecNative.begin_profiling
        before = cpu(Process::CLOCK_PROCESS_CPUTIME_ID)
        work(0.6)
        SpecNative.end_profiling / (cpu(Process::CLOCK_PROCESS_CPUTIME_ID) - before)
      end
      alone = signals
      Rperf.start(mode: :cpu)
      beside = signals
      puts JSON.generate({ alone:, beside:, weight: weight(Rperf.stop) })
    RUBY
    expect(results[:alone]).to be >= 50
    expect(results[:beside]).to be_within(results[:alone] * 0.3).of(results[:alone])
    expect(results[:weight]).to be >= 0.3
  end

  # Its own is there before the session, comes while it runs, or when it is over.
  %w[before meanwhile after].each do |time|
    it "a program's own handler of faults is called as alone: it came #{time}" do
      handled = ->(moment) { time == moment ? "SpecNative.handle_faults" : "" }
      results = told_with_native(<<~RUBY)
        survived = []
        #{handled["before"]}
        survived << SpecNative.survives_fault if #{time == "before"}
        Rperf.start(mode: :wall)
        work(0.1)
        #{handled["meanwhile"]}
        5.times { survived << SpecNative.survives_fault && work(0.05) } unless #{time == "after"}
        profile = Rperf.stop
        #{handled["after"]}
        survived << SpecNative.survives_fault
        # And in a session that follows.
        Rperf.start(mode: :wall)
        5.times { survived << SpecNative.survives_fault && work(0.02) }
        Rperf.stop
        survived << SpecNative.survives_fault
        puts JSON.generate({ survived: survived.uniq, weight: weight(profile) })
      RUBY
      expect(results).to match(survived: [true], weight: be >= 0.05)
    end
  end
end
