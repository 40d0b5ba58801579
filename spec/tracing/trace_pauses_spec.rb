# frozen_string_literal: true

require "json"

# Sections and pauses of traces of all calls, and pauses of sampling sessions.
RSpec.describe "Pauses", vm: true do
  lib = "-I#{File.join(Commands::ROOT, "lib")}"

  setup = <<~RUBY
    def leaf = 1
    def calls(profile, name = "Object#leaf")
      profile.top(value: "calls", sort: :total).find { |row| row[:name] == name }&.fetch(:self)
    end

    # The longest life of a thread, of all that counts.
    def life(profile)
      sums = %w[wall overhead].map { |value| profile.top(by: :thread, value:).to_h { |row| [row[:name], row[:self]] } }
      sums[0].merge(sums[1]) { |_, own, cost| own + cost }.values.max.to_i
    end

    # How many stacks weren't the VM's.
    def unequal(profile)
      profile.save("c.txt")
      Integer(File.read("c.txt")[/compared, (\\d+) unequal/, 1])
    end
  RUBY

  # Of a program that traces itself, without a warning.
  define_method(:told) { |program, **options| super("#{setup}\n#{program}", "-W0", **options) }

  describe "of a trace" do
    it "leave out calls and time, at each level" do
      results = told(<<~RUBY)
        results = %i[ruby all count count-all].map do |level|
          profile = Rperf.trace(calls: level, warn: false) do
            leaf
            value = Rperf.pause { leaf; sleep 0.1; :value }
            raise value.inspect unless value == :value
            2.times { leaf }
            news = [Rperf.pause, Rperf.pause]
            4.times { leaf }
            news << Rperf.resume << Rperf.resume
            raise news.inspect unless news == [true, false, true, false]
            3.times { leaf }
          end
          [calls(profile), level.start_with?("count") ? 0 : life(profile), profile[:duration_ns]]
        end
        puts results.to_json
      RUBY
      expect(results.map(&:first)).to all(eq(6))
      results.first(2).each { |_, life, duration| expect(life).to be_between(1, duration - 100_000_000) }
    end

    it "can begin in a deep call, and end in another one" do
      counts, unequal = told(<<~RUBY)
        def deep(n, &) = n.zero? ? yield : (deep(n - 1, &); leaf)
        def pauses = deep(20) { Rperf.pause }
        def resumes = deep(5) { leaf; Rperf.resume; leaf }
        def other = leaf
        Rperf.const_get(:Native).check_traces
        profile = Rperf.trace(warn: false) do
          50.times do
            pauses
            other
            resumes
            other
          end
        end
        names = %w[Object#pauses Object#resumes Object#other Object#deep Object#leaf]
        puts [names.map { |name| calls(profile, name) }, unequal(profile)].to_json
      RUBY
      # deep: 21 calls before each pause; leaf: one in the block, one after each of 5 calls, one by other.
      expect(counts).to eq([50, 0, 50, 1050, 350])
      expect(unequal).to eq(0)
    end

    it "know what threads and fibers did meanwhile" do
      counted, lives, unequal = told(<<~RUBY)
        Rperf.const_get(:Native).check_traces
        def work(queue) = while queue.pop do leaf end
        def blocked = sleep
        profile = Rperf.trace(warn: false) do
          queue = Thread::Queue.new
          workers = Array.new(2) { Thread.new { work(queue) } }
          sleeper = Thread.new { blocked }
          fiber = Fiber.new { loop { leaf; Fiber.yield } }
          fiber.resume
          30.times do |n|
            Rperf.pause do
              4.times { queue << 1 }
              Thread.pass until queue.empty?
              fiber.resume
              Thread.new { 3.times { leaf } }.join
              GC.start if n == 3
              sleep 0.001
            end
            fiber.resume
            queue << 1
            Thread.new { leaf }.join
            Thread.pass until queue.empty?
          end
          2.times { queue << nil }
          workers.each(&:join)
          sleeper.kill.join
        end
        asleep = profile.top(by: :state, value: "wall", focus: "Object#blocked").to_h { |row| [row[:name], row[:self]] }
        puts [calls(profile), [life(profile), asleep["GVL blocked"], profile[:duration_ns]], unequal(profile)].to_json
      RUBY
      # The fiber's first one, and in each round one of the fiber and one of a thread. Those of the workers can fall
      # into the pause or after it.
      expect(counted).to be_between(61, 61 + 150)
      main, asleep, duration = lives
      expect(main).to be_between(1, duration - 30_000_000)
      expect(asleep).to be_between(1, main)
      expect(unequal).to eq(0)
    end

    it "can be many at a time, and end with their blocks, whatever happens" do
      counts = told(<<~RUBY)
        require "timeout"
        profile = Rperf.trace(warn: false) do
          gate = Thread::Queue.new
          thread = Thread.new { Rperf.pause { gate.pop } }
          Thread.pass until thread.stop?
          Rperf.pause { leaf }
          leaf
          gate << 1
          thread.join
          leaf
          (Rperf.pause { leaf; raise "no" }) rescue leaf
          catch(:out) { Rperf.pause { leaf; throw :out } }
          leaf
          20.times { (Timeout.timeout(0.0005) { loop { Rperf.pause { leaf } } }) rescue nil }
          thread = Thread.new { Rperf.pause { sleep } }
          Thread.pass until thread.stop?
          thread.kill.join
          leaf
        end
        puts [calls(profile), Rperf.pause { 7 }, Rperf.pause, Rperf.resume].to_json
      RUBY
      expect(counts).to eq([4, 7, false, false])
    end

    it "have snapshots, and objects of what counts only" do
      counts, objects = told(<<~RUBY)
        def made = Array.new(50) { Object.new }
        Rperf.start(mode: :trace, measure: %i[alloc latency cpu])
        made
        Rperf.pause
        made
        parts = [Rperf.snapshot(clear: true)]
        made
        parts << Rperf.snapshot
        Rperf.resume
        2.times { made }
        parts << Rperf.stop
        objects = parts.map do |part|
          part.top(value: "alloc_objects", by: "label:%class").find { |row| row[:name] == "Object" }&.fetch(:self)
        end
        puts [parts.map { |part| calls(part, "Object#made") }, objects].to_json
      RUBY
      expect([counts, objects]).to eq([[1, nil, 2], [50, nil, 100]])
    end

    it "are told in the head of the profile" do
      write_file("app.rb", "require 'rperf'\nRperf.pause { sleep 0.05 }\n")
      text = rperf("trace", "-p", ruby, lib, "app.rb").stdout
      expect(text).to match(/^Traced: process \d+: \d\d+\.\d ms paused, in which nothing counts$/)
    end
  end

  describe "of a deferred trace" do
    it "are all that is in no section" do
      counts, life, duration = told(<<~RUBY)
        Rperf.start(mode: :trace, defer: true)
        3.times { leaf }
        sleep 0.05
        def section = Rperf.profile(page: "a") { 2.times { leaf }; Rperf.profile { leaf } }
        section
        leaf
        thread = Thread.new { Rperf.profile(page: "b") { leaf; sleep 0.02 } }
        thread.join
        leaf
        Rperf.profile { Rperf.pause { leaf }; leaf }
        Rperf.pause { Rperf.profile { leaf } }
        profile = Rperf.stop
        pages = profile.top(by: "label:page", value: "calls", focus: "leaf").to_h { |row| [row[:name], row[:self]] }
        puts [[calls(profile), pages["a"], pages["b"]], life(profile), profile[:duration_ns]].to_json
      RUBY
      expect(counts).to eq([5, 3, 1])
      expect(life).to be_between(20_000_000, duration - 50_000_000)
    end

    it "count nothing without a section, and leave the program's code as it is before the first" do
      write_file("rack.rb", <<~RUBY)
        require "rperf"
        require "rperf/rack"
        def leaf = 1
        app = Rperf::RackMiddleware.new(->(_) { leaf; [200, {}, []] })
        Rperf.start(mode: :trace, defer: true, output: "d.pb.gz")
        hooks = [Rperf.const_get(:Native).hooks?]
        leaf
        3.times { app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/users/1") }
        hooks << Rperf.const_get(:Native).hooks?
        Process.wait(fork { exit!(Rperf.running? ? 1 : 0) })
        leaf
        Rperf.stop
        print hooks
      RUBY
      expect(run(ruby, lib, "rack.rb").stdout).to eq("[false, true]")
      rows = Rperf.load(path_to("d.pb.gz")).top(value: "calls", by: "label:endpoint", focus: "Object#leaf")
      expect(rows.map { |row| row.values_at(:name, :self) }).to eq([["GET /users/:id", 3]])
      expect(told("puts Rperf.start(mode: :trace, defer: true) { leaf }.top(value: 'calls').to_json")).to eq([])
    end
  end

  describe "of a sampling session" do
    it "leave out what runs in them", alone: true do
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
      # How long the pauses were at least and at most, however busy the machine is.
      least = most = 0
      data = Rperf.start(mode: :wall) do
        spin(0.05)
        before = now.call
        Rperf.pause do
          began = now.call
          spin(0.1) && sleep(0.05)
          least += now.call - began
        end
        most += now.call - before
        before = now.call
        expect([Rperf.pause, Rperf.pause]).to eq([true, false])
        began = now.call
        spin(0.05)
        least += now.call - began
        expect([Rperf.resume, Rperf.resume]).to eq([true, false])
        most += now.call - before
        spin(0.05)
      end
      sum = data[:samples].select { |row| row[2] == 1 }.sum { |row| row[1] }
      expect(data[:duration_ns] - sum).to be_between(least, most + 5_000_000)
    end

    it "have the labels of a fiber that begins in one" do
      data = Rperf.start(mode: :wall) do
        Rperf.label(page: "a") do
          Rperf.pause
          Fiber.new { Rperf.resume && spin(0.05) }.resume
        end
      end
      labelled = data.top(by: "label:page", value: "wall").find { |row| row[:name] == "a" }
      expect(labelled[:self]).to be > 25_000_000
    end

    it "end for the session that they are of" do
      outcome = run(ruby, lib, "-rrperf", "-e", <<~RUBY)
        class Order; def total = 1; end
        Rperf.start(mode: :wall)
        print Rperf.pause { Rperf.stop && Rperf.start(mode: :wall, only: "Order#total") && 7 }
        Order.new.total
        print Rperf.stop.top(value: "calls").find { |row| row[:name] == "Order#total" }[:self]
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq(["71", ""])
    end

    it "are refused where chosen methods are counted" do
      message = "a session that counts chosen methods (only:) can't be paused"
      outcome = run(ruby, lib, "-rrperf", "-e", <<~RUBY)
        class Order; def total = 1; end
        Rperf.start(mode: :wall, only: "Order#total")
        begin
          Rperf.pause { 1 }
        rescue Rperf::Error => e
          print e.message
        end
      RUBY
      expect([outcome.stdout, outcome.stderr]).to eq([message, ""])
      expect { Rperf.start(mode: :trace, defer: true, only: "A#b") }
        .to raise_error(ArgumentError, "only: 'A#b' goes with defer: false, not with defer: true")
    end
  end
end
