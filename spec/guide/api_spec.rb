# frozen_string_literal: true

# Programs that use each part of the API, from the documentation.
RSpec.describe "The Ruby API, used as documented" do
  include Guide

  # Something to profile: 60 ms of the thread's CPU, of which late ticks may give some to what comes next.
  head = <<~RUBY
    require "rperf"

    def work
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.06
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end
  RUBY

  # Runs the program, and gives the values that it has put into `seen`.
  define_method(:seen_by) do |program|
    Marshal.load(output_of("#{head}seen = []\n#{program}\nprint Marshal.dump(seen)\n")) # rubocop:disable Security/MarshalLoad
  end

  it "profiles a block, writes the file, and gives the data" do
    data, = seen_by(<<~RUBY)
      data = Rperf.start(output: "profile.pb.gz", frequency: 1000, mode: :cpu) do
        work
      end
      seen << data
    RUBY
    expect(data).to include(mode: :cpu, frequency: 1000)
    expect(weight_of(data, "Object#work")).to be > 20_000_000
    expect(read_profile(path_to("profile.pb.gz"))[:samples]).to match_array(data[:samples])
  end

  it "saves the profile of a block as text" do
    output_of(<<~RUBY)
      require "rperf"

      def fib(n)
        return n if n <= 1
        fib(n - 1) + fib(n - 2)
      end

      data = Rperf.start(frequency: 1000, mode: :cpu) do
        fib(33)
      end

      Rperf.save("profile.txt", data)
    RUBY
    report = File.read(path_to("profile.txt"))
    expect(report).to match(/\ATotal: [\d,.]+ms \(cpu\)\nSamples: [\d,]+, Frequency: 1000Hz\n\nFlat:\n/)
    expect(table(report, "Flat").first).to match(["Object#fib (example.rb)", [be > 50, be > 90]])
    all = table(report, "Cumulative")
    expect(all).to include(
      "Object#fib (example.rb)" => [be > 50, be > 90], "block in <main> (example.rb)" => [be > 50, be > 90],
      "<main> (example.rb)" => [be > 50, be > 90]
    )
    expect(all.find { |name,| name.start_with?("Rperf.start ") }.last).to match([be > 50, be > 90])
  end

  it "profiles from start to stop, which gives nil if profiling is off" do
    data, nothing = seen_by(<<~RUBY)
      Rperf.start(frequency: 1000, mode: :wall)

      work
      sleep 0.03

      data = Rperf.stop
      seen << data << Rperf.stop
    RUBY
    expect(data).to include(mode: :wall, frequency: 1000)
    expect([weight_of(data, "Object#work"), weight_of(data, "GVL blocked")]).to all(be > 20_000_000)
    expect(nothing).to be_nil
  end

  describe "start" do
    it "has the documented defaults" do
      written, default = seen_by(<<~RUBY)
        arguments = { frequency: 1000, mode: :cpu, output: nil, verbose: false, format: nil, signal: nil,
                      aggregate: true }
        seen << Rperf.start(**arguments) { work } << Rperf.start { work }
      RUBY
      # A session in which a collection ran has its cause as a label.
      expect(default.keys - [:label_sets]).to eq(written.keys - [:label_sets])
      expect(default).to include(mode: :cpu, frequency: 1000)
      expect(files).to be_empty
    end

    it "takes another frequency, mode, file, format and signal, or none" do
      signals = ["false"]
      signals << (Signal.list.fetch("RTMIN", 34) + 7).to_s if RUBY_PLATFORM.include?("linux")
      signals.each do |signal|
        data, = seen_by(<<~RUBY)
          seen << Rperf.start(frequency: 500, mode: :wall, output: "p.out", format: :text, signal: #{signal}) { work }
        RUBY
        expect(data).to include(mode: :wall, frequency: 500)
        expect(weight_of(data, "Object#work")).to be > 20_000_000
        expect(File.read(path_to("p.out"))).to match(/\ATotal: .* \(wall\)\n.* 500Hz\n/)
      end
    end

    it "prints statistics to stderr with verbose: true" do
      write_file("example.rb", "#{head}Rperf.start(verbose: true) { work }\n")
      # The method and its callee; either may have all of the samples.
      top = /(?:Object#work|Process\.clock_gettime) /
      expect(type("ruby example.rb").stderr).to match(/\A\[rperf\] mode=cpu .*^\[rperf\] top 10.* #{top}/m)
    end
  end

  describe "stop" do
    program = <<~RUBY
      Rperf.start(mode: :wall, aggregate: %s)
      2.times { work }
      Rperf.label(request: "abc") { work }
      Thread.new { work }.join
      seen << Rperf.stop
    RUBY
    numbers = %i[sampling_count sampling_time_ns trigger_count detected_thread_count start_time_ns duration_ns]

    it "gives sums of samples with aggregate: true" do
      data, = seen_by(format(program, true))
      expect(data).to include(mode: :wall, frequency: 1000, detected_thread_count: be >= 2)
      expect(data.fetch_values(*numbers, :unique_frames, :unique_stacks)).to all(be_an(Integer).and(be_positive))
      expect(data[:start_time_ns]).to be_within(100_000_000_000).of(Time.now.to_f * 1e9)
      expect(data[:duration_ns]).to be_between(120_000_000, 60_000_000_000)
      expect(own_label_sets(data)).to eq([{}, { request: "abc" }])
      data[:samples].each do |frames, weight, thread, labels|
        expect(frames).to all(match([String, String]))
        # Thread 0 has the small remainders of threads that have ended: see docs/internals/accounting.md.
        expect([weight, thread, labels]).to match([be >= 0, be_between(0, 10), be_between(0, 1)])
      end
      working = data[:samples].select { |frames,| frames.any? { |_, name| name == "Object#work" } }
      expect(working.map { |row| row[2] }.uniq).to match([1, be_between(2, 10)]).or match([be_between(2, 10), 1])
      keys = data[:samples].map { |frames, _, thread, labels| [frames, thread, labels] }
      expect(keys.map(&:first).uniq.size).to eq(data[:unique_stacks])
      expect(keys.uniq.size).to eq(keys.size)
      deepest = keys.map(&:first).find { |frames| frames.any? { |_, name| name == "Object#work" } }
      expect(deepest.map(&:last)).to include("Object#work").and end_with("<main>")
    end

    it "gives every sample with aggregate: false" do
      data, = seen_by(format(program, false))
      expect(data).not_to include(:unique_frames)
      expect(data).not_to include(:unique_stacks)
      expect(data.fetch_values(*numbers)).to all(be_an(Integer).and(be_positive))
      keys = data[:samples].map { |frames, _, thread, labels| [frames, thread, labels] }
      expect(keys.uniq.size).to be < keys.size
      expect(data[:samples].sum { |row| row[1] }).to be_between(120_000_000, 60_000_000_000)
    end

    it "gives label sets only if labels were used" do
      expect(own_label_sets(seen_by("Rperf.start\nwork\nseen << Rperf.stop").first) - [{}]).to eq([])
    end

    it "counts frames and stacks" do
      data, = seen_by("Rperf.start(mode: :wall)\n2.times { work }\nsleep 0.01\nseen << Rperf.stop")
      stacks = data[:samples].map(&:first).uniq
      expect(data[:unique_stacks]).to eq(stacks.size)
      frames = stacks.flatten(1).reject { |_, name| name.start_with?("[") }
      expect(data[:unique_frames]).to be_between(frames.uniq.size, frames.uniq.size + 5)
    end
  end

  it "saves in the format of the extension, or in another one" do
    data, = seen_by(<<~RUBY)
      seen << data = Rperf.start { work }
      Rperf.save("profile.pb.gz", data)
      Rperf.save("profile.collapsed", data)
      Rperf.save("profile.txt", data)
      Rperf.save("output.dat", data, format: :text)
    RUBY
    expect(files).to eq(%w[output.dat profile.collapsed profile.pb.gz profile.txt])
    expect(read_profile(path_to("profile.pb.gz"))[:samples]).to match_array(data[:samples])
    ns = data[:samples].sum { |row| row[1] }
    expect(collapsed(File.read(path_to("profile.collapsed"))).sum(&:last)).to eq(ns)
    expect(File.read(path_to("profile.txt"))).to match(/\ATotal: /).and eq(File.read(path_to("output.dat")))
  end

  describe "snapshot" do
    it "gives the profile so far, and profiling goes on" do
      none, snap, data = seen_by(<<~RUBY)
        seen << Rperf.snapshot
        Rperf.start(frequency: 1000)
        work
        snap = Rperf.snapshot
        Rperf.save("snap.pb.gz", snap)
        2.times { work }
        data = Rperf.stop
        seen << snap << data
      RUBY
      expect(none).to be_nil
      expect(weight_of(snap, "work")).to be > 20_000_000
      expect(weight_of(data, "work")).to be > weight_of(snap, "work") + 40_000_000
      expect(read_profile(path_to("snap.pb.gz"))[:samples]).to match_array(snap[:samples])
    end

    it "begins anew with clear: true, as a file every ten seconds needs" do
      # Ten seconds pass in a tenth of one, three times.
      seen_by(<<~RUBY)
        def Time.now = at(Process.clock_gettime(Process::CLOCK_MONOTONIC) * 100)
        def sleep(seconds)
          raise StopIteration if (@sleeps = @sleeps.to_i + 1) > 3
          send(:"part_\#{@sleeps}")
          super(seconds / 100.0)
        end
        def part_1 = 3.times { work }
        def part_2 = 3.times { work }
        def part_3 = 3.times { work }

        Rperf.start(frequency: 1000)

        loop do
          sleep 10
          snap = Rperf.snapshot(clear: true)
          Rperf.save("profile-\#{Time.now.to_i}.pb.gz", snap)
        end
      RUBY
      parts = files.map { |file| read_profile(path_to(file)) }
      weights = parts.map { |data| %w[part_1 part_2 part_3].map { |name| weight_of(data, name) > 20_000_000 } }
      expect(weights).to eq([[true, false, false], [false, true, false], [false, false, true]])
    end

    it "has none with aggregate: false" do
      write_file("example.rb", "require 'rperf'\nRperf.start(aggregate: false)\nRperf.snapshot rescue abort $!.message")
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "example.rb")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /aggregate: false/])
    end
  end

  describe "label" do
    it "is ignored where nothing is profiled" do
      expect(seen_by(<<~RUBY)).to eq([:value, {}])
        seen << Rperf.label(request: "abc-123") { :value }
        Rperf.label(request: "abc-123")
        seen << Rperf.labels
      RUBY
    end

    it "is on the samples of its block, and gone after it, also after an exception" do
      labels, data = seen_by(<<~RUBY)
        def handle_request = work
        def fail_after_work = work && raise("no")

        Rperf.start
        Rperf.label(request: "abc-123", endpoint: "/api/users") do
          handle_request
        end
        seen << Rperf.labels
        Rperf.label(request: "other") { work; raise IndexError } rescue nil
        seen[0] = [seen[0], Rperf.labels]
        2.times { work }
        seen << Rperf.stop
      RUBY
      expect(labels).to eq([{}, {}])
      expect_own_labels(data, :request, { "handle_request" => "abc-123" })
      expect(data[:label_sets]).to include({ request: "abc-123", endpoint: "/api/users" })
      expect(time_by_label(data, :request)).to match(
        "abc-123" => be > 20_000_000, "other" => be > 20_000_000, nil => be > 40_000_000
      )
    end

    it "stays on the thread without a block" do
      data, = seen_by(<<~RUBY)
        Rperf.start
        Rperf.label(request: "abc-123")
        work
        Thread.new { def other = work; other }.join
        work
        seen << Rperf.stop
      RUBY
      expect_own_labels(data, :request, { "other" => nil })
      expect(time_by_label(data, :request)["abc-123"]).to be > 40_000_000
    end

    it "is merged with those that are there, and taken away by nil" do
      expect(seen_by(<<~RUBY)).to eq([{ request: "abc", phase: "db" }, { phase: "db" }])
        Rperf.start
        Rperf.label(request: "abc")
        Rperf.label(phase: "db")
        seen << Rperf.labels
        Rperf.label(request: nil)
        seen << Rperf.labels
      RUBY
    end

    it "is restored after each of nested blocks" do
      expect(seen_by(<<~RUBY)).to eq([{ request: "abc", phase: "db" }, { request: "abc" }, {}])
        Rperf.start
        Rperf.label(request: "abc") do
          Rperf.label(phase: "db") do
            seen << Rperf.labels
            Rperf.label(left: "behind")
          end
          seen << Rperf.labels
        end
        seen << Rperf.labels
      RUBY
    end

    it "is told by labels, which are an empty Hash without any" do
      expect(seen_by(<<~RUBY)).to eq([{}, {}, { request: "abc", phase: "db" }])
        seen << Rperf.labels
        Rperf.start
        seen << Rperf.labels
        Rperf.label(request: "abc", phase: "db")
        seen << Rperf.labels
      RUBY
    end
  end

  it "does all of it in one program" do
    seen = seen_by(<<~RUBY)
      data = Rperf.start(output: "profile.pb.gz", mode: :cpu) do
        work
      end
      Rperf.start(frequency: 1000, mode: :wall)
      snap = Rperf.snapshot
      Rperf.save("snap.pb.gz", snap)
      snap = Rperf.snapshot(clear: true)
      Rperf.label(request: "abc") do
        work
        seen << Rperf.labels
      end
      data = Rperf.stop
      Rperf.save("profile.pb.gz", data)
      Rperf.save("profile.collapsed", data)
      Rperf.save("profile.txt", data)
      seen << data
    RUBY
    expect(seen.first).to eq(request: "abc")
    expect(time_by_label(seen.last, :request)["abc"]).to be > 20_000_000
    expect(files).to eq(%w[profile.collapsed profile.pb.gz profile.txt snap.pb.gz])
  end
end
