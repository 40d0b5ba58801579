# frozen_string_literal: true

require "json"

# The last name that a thread had is in its profile, and "main" is the main thread's.
RSpec.describe "names of threads" do
  # Numbers of threads differ: names alone, each once.
  def names(profile) = profile.fetch(:thread_names, {}).values.sort

  # The name of the thread that has a method.
  def name_of(profile, method)
    row = profile[:samples].find { |frames,| frames.any? { |_, name| name == method } }
    profile[:thread_names][row[2]]
  end

  describe "in a sampled profile", vm: true do
    %i[cpu wall].each do |mode|
      it "are the last ones, of threads that live and of those that have ended, #{mode}" do
        queue = Thread::Queue.new
        profile = Rperf.start(mode:) do
          ended = Thread.new do
            Thread.current.name = "first"
            spin(0.1)
            Thread.current.name = "ended"
          end
          ended.join
          living = Thread.new { [spin(0.1), queue.pop] }
          spin(0.1)
          living.name = "living"
          unnamed = Thread.new { spin(0.03) }
          unnamed.join
        end
        queue << 1
        expect(names(profile)).to eq(%w[ended living main])
      end
    end

    it "are those that a thread has while it sleeps, given by another one" do
      sleeper = Thread.new { sleep }
      profile = Rperf.start(mode: :wall) do
        sleep 0.01
        sleeper.name = "ノード"
        sleep 0.01
      end
      expect(names(profile)).to eq(%w[main ノード])
      sleeper.name = nil
      sleeper.wakeup
      expect(names(Rperf.start(mode: :wall) { sleep 0.01 })).to eq(["main"])
    end

    it "are there in snapshots, and of threads that have ended once only if these are cleared" do
      seen = []
      Rperf.start(mode: :wall)
      lasting = Thread.new { sleep }.tap { |it| it.name = "lasting" }
      2.times do |number|
        Thread.new { spin(0.1) }.tap { |it| it.name = "job #{number}" }.join
        seen << names(Rperf.snapshot(clear: true))
      end
      seen << names(Rperf.snapshot) << names(Rperf.stop)
      lasting.kill.join
      living = %w[lasting main]
      expect(seen).to eq([["job 0", *living], ["job 1", *living], living, living])
    end

    it "are those of threads in sections" do
      Rperf.start(mode: :wall, defer: true)
      2.times do |number|
        Rperf.profile { Thread.new { spin(0.1) }.tap { |it| it.name = "section #{number}" }.join }
      end
      expect(names(Rperf.stop)).to include("main", "section 0", "section 1")
    end

    it "are those of forked children too, whose forking thread is their main thread" do
      told = told(<<~RUBY)
        def spin(seconds) = (ends = Process.clock_gettime(2) + seconds; nil while Process.clock_gettime(2) < ends)
        Rperf.start(mode: :wall, inherit: :fork)
        Thread.new do
          Thread.current.name = "forker"
          Process.wait(fork { Thread.new { spin(0.1) }.tap { |it| it.name = "of the child" }.join })
        end.join
        data = Rperf.stop
        puts JSON.generate(data[:thread_names].values.sort)
      RUBY
      expect(told.tally).to include("forker" => be >= 1, "main" => 1, "of the child" => 1)
    end

    it "are those of threads of other Ractors, as far as these have waited since", alone: true do
      told = told(<<~'RUBY')
        Warning[:experimental] = false
        def spin(seconds) = (ends = Process.clock_gettime(2) + seconds; nil while Process.clock_gettime(2) < ends)
        profile = Rperf.start(mode: :wall) do
          ractor = Ractor.new do
            Thread.current.name = "ractor's"
            Thread.new { Thread.current.name = "second"; spin(0.05); sleep 0.01 }.join
            spin(0.05)
            sleep 0.01
          end
          ractor.respond_to?(:value) ? ractor.value : ractor.take
        end
        puts JSON.generate(profile[:thread_names].values.sort)
      RUBY
      expect(told).to eq(["main", "ractor's", "second"])
    end

    it "slow no thread down that ends without one, and do no harm where they are odd" do
      profile = Rperf.start(mode: :wall) do
        ["", "a" * 10_000, "line\nbreak", "\xff".b, "ü".encode("ISO-8859-1")].each do |name|
          Thread.new { spin(0.1) }.tap { |it| it.name = name }.join
        end
        100.times { Thread.new { nil }.join }
        GC.compact if GC.respond_to?(:compact)
      end
      expect(names(profile)).to all(be_valid_encoding)
      expect(names(profile).map(&:bytesize).max).to be <= 256
      expect(names(profile)).to include("main", "line\nbreak", "a" * 256)
    end
  end

  describe "in a trace", vm: true do
    it "are the last ones, of threads that live and of those that have ended" do
      profile = Rperf.trace do
        Thread.new { spin(0.001) }.tap { |it| it.name = "ended" }.join
        living = Thread.new { [spin(0.001), sleep] }
        sleep 0.01
        living.name = "living"
      end
      expect(names(profile)).to include("ended", "living", "main")
      expect(name_of(profile, "Profiles#spin")).to be_a(String)
    end
  end

  # In both kinds of sessions, and though `require "rperf"` comes after it.
  it "are there in a program that has redefined all that names threads", vm: true do
    write_file("app.rb", <<~'RUBY')
      def spin(seconds) = (ends = Process.clock_gettime(2) + seconds; nil while Process.clock_gettime(2) < ends)
      queue, done = Array.new(2) { Thread::Queue.new }
      named = Thread.new { Thread.current.name = "named"; done << true while queue.pop && spin(0.1).nil? }
      sleep 0.001 until named.stop?
      class Thread
        %i[initialize name name= inspect to_s].each { |method| define_method(method) { |*| raise "redefined" } }
        define_singleton_method(:new) { |*| raise "redefined" }
      end
      require "rperf"
      found = %i[wall trace].map do |mode|
        Rperf.start(mode:)
        queue << true
        done.pop
        Rperf.stop[:thread_names].values.sort
      end
      puts JSON.generate(found)
    RUBY
    outcome = run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", "-rjson", "app.rb")
    expect(outcome.stderr).to eq("")
    expect(JSON.parse(outcome.stdout)).to eq([%w[main named]] * 2)
  end

  describe "in files and views" do
    before do
      write_file("app.rb", <<~RUBY)
        def spin(seconds) = (ends = Process.clock_gettime(2) + seconds; nil while Process.clock_gettime(2) < ends)
        def mine = spin(0.1)
        def others = spin(0.1)
        Array.new(2) { |it| Thread.new { others }.tap { |thread| thread.name = "worker-\#{it}" } }.each(&:join)
        Thread.new { others }.tap { |thread| thread.name = "pool" }.join
        Thread.new { others }.tap { |thread| thread.name = "pool" }.join
        mine
      RUBY
      rperf("record", ruby, "app.rb")
    end

    def report(*) = rperf("report", "--top", *).stdout

    it "are rows of threads and of their label" do
      rows = report("--by", "thread")
      %w[main worker-0 worker-1 pool].each { |name| expect(rows).to match(/thread \d: #{name}$/) }
      rows = report("--by", "label:thread")
      expect(rows.scan(/(?:main|worker-\d|pool)$/).tally)
        .to eq("main" => 1, "worker-0" => 1, "worker-1" => 1, "pool" => 1)
      expect(rows).not_to include("(no name)")
      expect(rperf("report", "--tree", "--tagroot", "thread").stdout).to match(/\d ms.* worker-0/)
    end

    it "are what --thread and --tagfocus choose by, and what other formats have" do
      chosen = [%w[--thread worker], %w[--thread main], %w[--tagfocus thread=pool]].map { |options| report(*options) }
      found = chosen.map { |rows| rows.scan(/Object#(?:mine|others)/).uniq }
      expect(found).to eq([["Object#others"], ["Object#mine"], ["Object#others"]])
      labels = PprofMessage.read(path_to("rperf.data")).labels
      expect(labels.filter_map { |set| set["thread"] }.uniq).to contain_exactly("main", "pool", "worker-0", "worker-1")
      merged = Rperf.merge(path_to("rperf.data"), path_to("rperf.data"))
      expect(merged[:thread_names].values.tally).to include("main" => 2, "pool" => 4)
      changed = Rperf.load(path_to("rperf.data"))
      changed[:note] = 1
      expect(changed.top(by: :thread).map { |row| row[:name] }).to include(/: main\z/, /: pool\z/)
      expect { Rperf.save(path_to("x"), changed.merge(thread_names: { 1 => 2 })) }
        .to raise_error(ArgumentError, /thread_names/)
    end
  end
end
