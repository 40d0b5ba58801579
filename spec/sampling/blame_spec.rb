# frozen_string_literal: true

# Waits for the GVL are charged to whoever has it meanwhile: measure: :blame.
RSpec.describe "Blame for the GVL", vm: true do
  # What all of them share. A thread that computes for so many ms doesn't let others run, unless that takes 100 ms.
  head = <<~RUBY
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def compute(ms)
      deadline = now + (ms / 1000.0)
      nil while now < deadline
    end

    def hog(ms) = compute(ms)
    def work(ms) = compute(ms)

    # Wants the GVL again as soon as it has had it for a moment.
    def visitor = Thread.new { loop { sleep(0.0005); work(0.05) } }

    def profile(**, &) = Rperf.start(mode: :wall, frequency: 1000, measure: :blame, **, &)

    # What the block makes in a forked child.
    def fork_for_value
      reader, writer = IO.pipe
      pid = fork { writer.write(Marshal.dump(yield)) }
      writer.close
      value = Marshal.load(reader.read)
      Process.wait(pid)
      value
    end

    # All that waited, and all that is to blame for it, in ns.
    def sums(profile)
      waits = profile.top(value: "wall", by: :state, idle: true, limit: nil).find { |row| row[:name] == "GVL wait" }
      [waits ? waits[:self] : 0, profile.top(value: "gvl_blame", idle: true, limit: nil).sum { |row| row[:self] }]
    end

    def shares(profile, by, sort: :self)
      rows = profile.top(value: "gvl_blame", by:, sort:, idle: true, limit: nil)
      all = rows.sum { |row| row[:self] }.to_f
      rows.to_h { |row| [row[:name], (row[sort] / all).round(4)] }
    end
  RUBY

  # The share in what threads that run are to blame for: on a busy machine hand-overs take long, as threads wake late.
  def of_running(shares, name) = shares.fetch(name) / (1 - shares.fetch("[GVL hand-over]", 0))

  define_method(:told_of) { |program, *options, **run| told("#{head}\n#{program}", *options, **run) }

  compilers = ["--disable-yjit", *("--yjit" if RbConfig::CONFIG["YJIT_SUPPORT"] != "no")]
  compilers.each do |compiler|
    it "adds up to all waits, and finds the method that keeps others waiting, with #{compiler}" do
      waits, blame, methods, threads = told_of(<<~RUBY, compiler)
        profile = profile do
          deadline = now + 1.5
          visitors = Array.new(2) { visitor }
          [Thread.new { while now < deadline do hog(40); sleep(0.01) end }.tap { |it| it.name = "hog" },
           Thread.new { while now < deadline do work(0.3); sleep(0.001) end }].each(&:join)
          visitors.each(&:kill).each(&:join)
        end
        puts [*sums(profile), shares(profile, :function, sort: :total), shares(profile, :thread)].to_json
      RUBY
      expect(blame).to eq(waits)
      expect(waits).to be > 500_000_000
      # On a busy machine the others keep the GVL while they wait for a CPU.
      expect(of_running(methods, "Object#hog")).to be > 0.6
      expect(methods.fetch("Object#hog")).to be > 4 * methods.fetch("Object#work", 0)
      hog = threads.keys.find { |name| name.include?("hog") }
      expect(of_running(threads, hog)).to be > 0.6
      expect(methods.fetch("[GVL hand-over]", 0)).to be < 0.4
    end
  end

  it "has shares by label that are those of the time in which others wait", alone: true do
    shares, times = told_of(<<~RUBY)
      turns = Array.new(3) { Queue.new }
      times = Hash.new(0)
      profile = profile do
        deadline = now + 2
        waiting = visitor
        # They take turns, so that none of them waits for another one but for a moment.
        threads = { "long" => 30, "middle" => 20, "short" => 10 }.each_with_index.map do |(endpoint, ms), index|
          Thread.new do
            Rperf.label(endpoint:) do
              while turns[index].pop && now < deadline
                since = now
                hog(ms)
                # The visitor sleeps at first.
                times[endpoint] += now - since - 0.0005
                turns[(index + 1) % 3] << true
              end
              turns[(index + 1) % 3] << nil
            end
          end
        end
        turns.first << true
        threads.each(&:join)
        waiting.kill.join
      end
      puts [shares(profile, "label:endpoint"), times].to_json
    RUBY
    all = times.values.sum
    times.each { |endpoint, time| expect(shares.fetch(endpoint)).to be_within(0.1).of(time / all), endpoint }
  end

  it "goes to what runs while others wait, in pieces shorter than an interval, too" do
    methods = told_of(<<~RUBY)
      # The same thread computes while nobody waits, and while the other one does.
      requests, answers = Queue.new, Queue.new
      profile = profile do
        deadline = now + 2
        other = Thread.new { while requests.pop do answers << true end }
        while now < deadline
          work(0.4)
          requests << true
          hog(0.4)
          answers.pop
        end
        requests << nil
        other.join
      end
      puts shares(profile, :function, sort: :total).to_json
    RUBY
    expect(methods.fetch("Object#hog")).to be > 8 * methods.fetch("Object#work", 0)
  end

  it "adds up where threads share native threads" do
    waits, blame, methods = told_of(<<~RUBY, env: { "RUBY_MN_THREADS" => "1" })
      profile = profile do
        deadline = now + 1
        queue = Queue.new
        [Thread.new { while now < deadline do hog(40); sleep(0.01) end },
         Thread.new { while now < deadline do work(0.3); queue << 1; sleep(0.001) end },
         Thread.new { while now < deadline do queue.pop(timeout: 0.01); work(0.1) end }].each(&:join)
      end
      puts [*sums(profile), shares(profile, :function, sort: :total)].to_json
    RUBY
    expect(blame).to eq(waits)
    expect(of_running(methods, "Object#hog")).to be > 0.6
  end

  it "counts what is in sections, whoever waits as they begin and end" do
    (waits, blame), seconds = told_of(<<~RUBY)
      waiting = Array.new(10) { visitor }
      queue, answers = Queue.new, Queue.new
      # One that another thread wakes, mostly while a section is open.
      woken = Thread.new { while queue.pop do answers << work(0.1) end }
      Rperf.start(mode: :wall, frequency: 1000, measure: :blame, defer: true)
      20.times do
        Rperf.profile { queue << true; hog(15) }
        hog(5)
        answers.pop
      end
      profile = Rperf.stop
      [*waiting, woken].each(&:kill).each(&:join)
      puts [sums(profile), profile.to_h[:duration_ns] / 1e9].to_json
    RUBY
    expect(blame).to be_within(1_000_000).of(waits)
    expect(waits).to be_between(1e8, 1.1e10 * seconds)
  end

  it "has collections that keep others waiting as such" do
    blame, states = told_of(<<~RUBY)
      profile = profile do
        waiting = visitor
        kept = Array.new(300_000) { Object.new }
        20.times { GC.start }
        waiting.kill.join
        kept.clear
      end
      states = profile.top(value: "gvl_blame", by: :state, limit: nil)
      puts [sums(profile), states.to_h { |row| row.values_at(:name, :self) }].to_json
    RUBY
    expect(blame.uniq.size).to eq(1)
    expect(states.fetch("GC marking")).to be > states.values.sum / 3
  end

  it "adds up whatever threads do, in snapshots too" do
    sums = told_of(<<~RUBY, limit: 3 * Commands::TIME_LIMIT)
      parts = []
      profile = profile do
        mutex, queue = Mutex.new, Queue.new
        threads = Array.new(60) do |number|
          Thread.new do
            loop do
              case (number + rand(3)) % 6
              when 0 then work(0.1)
              when 1 then sleep(0.001)
              when 2 then mutex.synchronize { work(0.05) }
              when 3 then queue << number
              when 4 then Thread.new { work(0.05) }.join
              else queue.pop(timeout: 0.002)
              end
            end
          end
        end
        GC.stress = true
        Array.new(50) { "text" * 2 }
        GC.stress = false
        3.times do
          work(30)
          sleep(0.2)
          threads.pop(10).each(&:kill)
          pid = fork { work(5) }
          Process.wait(pid)
          parts << Rperf.snapshot(clear: true)
        end
        threads.each(&:kill).each(&:join)
      end
      puts [*parts, profile].map { |it| sums(it) }.to_json
    RUBY
    waits, blame = sums.transpose.map(&:sum)
    # A thread may become ready while a snapshot has passed it, and not yet the waits.
    expect(blame).to be_within(waits / 1_000).of(waits)
    expect(waits).to be > 100_000_000
  end

  it "adds up to the nanosecond where 100 threads are killed and each object is a collection, and in a forked child" do
    sums = told_of(<<~RUBY, limit: 3 * Commands::TIME_LIMIT)
      def threads(count)
        Array.new(count) do |number|
          Thread.new do
            loop do
              work(0.05)
              sleep(0.001)
              Array.new(3) { "text" * number } if number.even?
            end
          end
        end
      end

      def summed(count)
        sums(profile do
          threads = threads(count)
          sleep(0.3)
          GC.stress = true
          sleep(0.3)
          threads.each(&:kill).each(&:join)
          GC.stress = false
        end)
      end

      puts [summed(100), fork_for_value { summed(4) }].to_json
    RUBY
    sums.each do |waits, blame|
      expect(blame).to eq(waits)
      expect(waits).to be > 100_000_000
    end
  end

  it "says of waits for other Ractors' GVLs that their holder is unknown" do
    skip "this Ruby has no Ractors" unless defined?(Ractor)
    sums, rows = told_of(<<~RUBY, "-W0")
      profile = profile do
        ractor = Ractor.new { Array.new(2) { Thread.new { deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.5
                                                           nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline } }.each(&:join); nil }
        work(100)
        ractor.respond_to?(:value) ? ractor.value : ractor.take
      end
      puts [sums(profile), shares(profile, :function)].to_json
    RUBY
    expect(sums.uniq.size).to eq(1)
    expect(rows.fetch("[GVL holder unknown]")).to be > 0.8
  end

  it "is refused without waits, in a line" do
    outcome = rperf("record", "--measure", "blame", ruby, "-e", "1")
    expect([outcome.status.success?, outcome.stderr.lines.size]).to eq([false, 1])
    expect(outcome.stderr).to include("--measure blame goes with -m wall, not with -m cpu")
  end

  it "has a view of its own, which says of profiles without it how they get it" do
    write_file("app.rb", "#{head}\nvisitor; hog(200)")
    expect(rperf("record", "-m", "wall", "--measure", "blame", "-o", "blame.pb.gz", ruby,
                 "app.rb").status).to be_success
    page = rperf("report", "--blame", "--sort", "total", "blame.pb.gz").stdout
    expect(page).to include("Type: gvl_blame").and match(/Object#hog \(app\.rb\)$/)
    rperf("record", "-m", "wall", "-o", "plain.pb.gz", ruby, "app.rb")
    outcome = rperf("report", "--blame", "plain.pb.gz")
    expect(outcome.stderr).to match(/\Arperf: .*'gvl_blame'; .* \(-m wall --measure blame adds them\)\n\z/)
    expect(outcome.status).not_to be_success
  end
end
