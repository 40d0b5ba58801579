# frozen_string_literal: true

require "pathname"

RSpec.describe Rperf, vm: true do
  describe ".start with a block" do
    it "returns the profile of the block" do
      data = described_class.start(mode: :wall) { sleep 0.1 }
      expect(data).to include(mode: :wall, frequency: 1000, detected_thread_count: 1)
      expect(data[:duration_ns]).to be_between(90_000_000, 5_000_000_000)
      expect(weight_of(data, "[GVL blocked]")).to be_between(90_000_000, 5_000_000_000)
    end

    it "writes the output" do
      described_class.start(output: path_to("p.pb.gz")) { spin 0.05 }
      data = read_profile(path_to("p.pb.gz"))
      expect(data[:mode]).to eq(:cpu)
      expect(weight_of(data, "spin")).to be > 20_000_000
    end

    it "writes it although the handler of a signal raises as it is made" do
      allow(described_class.const_get(:Native)).to receive(:stop_into).and_wrap_original do |stop, *arguments|
        stop.call(*arguments)
        raise Interrupt
      end
      described_class.start(output: path_to("p.pb.gz"))
      spin 0.05
      expect { described_class.stop }.to raise_error(Interrupt)
      expect(described_class.load(path_to("p.pb.gz"))[:samples]).not_to be_empty
      expect(described_class).not_to be_running
    end

    it "lets the block's exception through and still writes the output" do
      output = path_to("p.txt")
      expect { described_class.start(output:) { raise KeyError, "mine" } }.to raise_error(KeyError, "mine")
      expect(File.read(output)).to start_with("Total: ")
      expect(described_class).not_to be_running
    end

    it "ends profiling when the block is left by break or throw" do
      catch(:out) { described_class.start { throw :out } }
      described_class.start { break }
      expect(described_class).not_to be_running
    end
  end

  describe ".start and .stop" do
    it "profile what is between them" do
      expect(described_class.start).to be(true)
      expect(described_class).to be_running
      spin 0.05
      data = described_class.stop
      expect(described_class).not_to be_running
      expect(weight_of(data, "spin")).to be > 20_000_000
    end

    it "give the profile later if the handler of a signal raises as it is made" do
      profiles = told(<<~RUBY, symbolize_names: true)
        trap("USR1") { raise "mine" }
        Rperf.start
        (1..1000).sum(&:to_s.to_proc >> :size.to_proc) while Process.clock_gettime(2) < 0.2
        ends = TracePoint.new(:c_return) do |it|
          next unless it.method_id == :stop_into
          ends.disable
          Process.kill(:USR1, Process.pid)
        end
        ends.enable
        profiles = Array.new(3) do
          profile = Rperf.stop
          profile && profile[:samples].size
        rescue RuntimeError => e
          e.message
        end
        puts JSON.generate(profiles)
      RUBY
      expect(profiles).to match(["mine", be > 0, nil])
    end

    it "give nil without a session" do
      expect(described_class.stop).to be_nil
    end

    it "refuse a second session and leave the first one alone" do
      described_class.start
      expect { described_class.start }.to raise_error(Rperf::Error, /already/)
      expect(described_class.stop).to be_a(Hash)
    end

    it "can be repeated" do
      20.times { described_class.start { nil } }
      expect(described_class.start { spin 0.02 }[:samples]).not_to be_empty
    end

    it "give the keys of the guide, with rows of frozen, shared objects" do
      data = described_class.start { spin 0.05 }
      expect(data.keys).to include(
        :mode, :frequency, :sampling_count, :sampling_time_ns, :trigger_count, :detected_thread_count,
        :start_time_ns, :duration_ns, :unique_frames, :unique_stacks, :dropped_samples
      )
      expect(data[:aggregated_samples]).to be(data[:samples])
      frames, weight, thread, labels = data[:samples].max_by { |row| row[1] }
      expect([weight, thread, labels]).to match([Integer, 1, 0])
      expect(frames.last).to match([String, String]).and be_frozen
    end

    it "keep raw samples in the order of their time" do
      data = described_class.start(aggregate: false) { spin 0.05 }
      expect(data[:raw_samples]).to be(data[:samples])
      expect(data).not_to include(:unique_stacks)
      times = data[:samples].map { |row| row[6] }
      expect(times).to eq(times.sort)
      expect(times.size).to be > 5
    end

    it "print statistics when asked" do
      expect { described_class.start(verbose: true) { spin 0.02 } }
        .to output(/\A\[rperf\] mode=cpu frequency=1000Hz\n.*top 10 by flat:/m).to_stderr
    end

    it "write elsewhere what can't be written to the output, and say where" do
      Dir.mkdir(path_to("gone"))
      described_class.start(output: path_to("gone/p.pb.gz"))
      Dir.rmdir(path_to("gone"))
      message = begin
        described_class.stop
      rescue Rperf::Error => e
        e.message
      end
      expect(message).to match(/No such file or directory/)
      saved = message[%r{it is in (/\S+)}, 1]
      expect(read_profile(saved)).to include(mode: :cpu)
    ensure
      File.delete(saved) if saved
    end
  end

  describe "lines:" do
    # The line on which spin spends its time.
    let(:loop_line) { Profiles.instance_method(:spin).source_location.last + 2 }
    let(:loop_row) do
      path = "spec/support/profiles.rb"
      /^ +[\d.]+ ms +[\d.]+% +[\d.]+ ms +[\d.]+%  #{Regexp.escape(path)}:#{loop_line} \(Profiles#spin\)$/
    end

    def report(**arguments)
      described_class.start(output: path_to("p.txt"), **arguments) { spin 0.05 }
      File.read(path_to("p.txt"))
    end

    it "true adds the hottest lines to a text output" do
      *tables, lines = report(lines: true).split("\n\n")
      expect(tables.map { |table| table.lines.first.chomp }).to match([/\ATotal: /, "Flat:", "Cumulative:"])
      expect(lines.lines[0, 3]).to match(["Lines:\n", /\A +self +total\n\z/, loop_row])
    end

    it "nil records them and leaves a text output as it is" do
      expect(report).not_to include("Lines:")
    end

    it "false records none" do
      described_class.save(path_to("p.txt"), described_class.start(lines: false) { spin 0.05 }, lines: true)
      expect(File.read(path_to("p.txt"))).to end_with("\n\nLines: none were recorded\n")
    end

    it "of save does the same for what was recorded, and for a pprof file of it" do
      data = described_class.start { spin 0.05 }
      described_class.save(path_to("p.txt"), data, lines: true)
      described_class.save(path_to("p.pb.gz"), data)
      report = File.read(path_to("p.txt"))
      expect(report).to match(loop_row)
      expect(text_report(Rperf.load(path_to("p.pb.gz")), lines: true)).to eq(report)
    end

    it "of save says so if the Hash was changed: only the profile itself has lines" do
      described_class.save(path_to("p.txt"), made_profile, lines: true)
      expect(File.read(path_to("p.txt"))).to end_with("\n\nLines: none were recorded\n")
    end

    it "makes no difference to the Hash, whose rows are about methods" do
      data = described_class.start do
        spin 0.02
        spin 0.02
      end
      rows = data[:samples].map { |frames, _, thread, labels| [frames, thread, labels] }
      expect(rows.uniq.size).to eq(rows.size)
      expect(data[:unique_stacks]).to eq(rows.map(&:first).uniq.size)
    end
  end

  describe "capture: :tick", if: Gem::Platform.local.os == "linux" do
    it "needs a timer with a signal" do
      expect { described_class.start(capture: :tick, signal: false) }
        .to raise_error(ArgumentError, "signal: false goes with capture: :safepoint or nil, not with capture: :tick")
      expect(described_class).not_to be_running
    end
  end

  describe "arguments", vm: false do
    {
      frequency: [0, 10_001, -1, 1000.0, "1000", nil],
      mode: [:gpu, "cpu", nil],
      verbose: [1, nil, "yes"],
      format: [:svg, "text", true],
      signal: [0, 9, 15, 1000, true, "RTMIN", 42.0],
      aggregate: [nil, 1],
      lines: [1, "yes"],
      capture: [:leaf, "tick", true, false],
      output: ["", "/no/such/directory/p", "/", 5, "a\0b"]
    }.each do |name, values|
      values.each do |value|
        it "refuses #{name}: #{value.inspect}, naming the argument and the value" do
          expect { described_class.start(name => value) }
            .to raise_error(ArgumentError, /\A#{name}: must be .*not #{Regexp.escape(value.inspect)}\z/)
          expect(described_class).not_to be_running
        end
      end
    end

    it "refuses objects that can't be shown, or have no methods at all" do
      mute = Class.new { def inspect = raise("no") }.new
      names = %i[frequency mode output verbose format signal aggregate lines capture]
      names.product([BasicObject.new, mute]).each do |name, value|
        expect { described_class.start(name => value) }
          .to raise_error(ArgumentError, /\A#{name}: must be .*not an object of /)
      end
      expect { described_class.save(path_to("p"), BasicObject.new) }.to raise_error(ArgumentError, /BasicObject/)
    end

    it "refuses an output that is named as no profile, unless its format is given" do
      { "x.md" => "write x.pb.gz, which 'rperf report' converts, or give format: :markdown",
        "x.JSON" => "write x.pb.gz, which 'rperf report' converts, or give format: :json",
        "x.svg" => "write x.pb.gz", "x.png" => "write x.pb.gz" }.each do |name, remedy|
        message = "output: #{path_to(name)}: a profile is no #{File.extname(name).downcase}: #{remedy}"
        expect { described_class.start(output: path_to(name)) }.to raise_error(ArgumentError, message)
        expect(described_class).not_to be_running
      end
      described_class.start(output: path_to("x.md"), format: :markdown) { nil }
      expect(File.read(path_to("x.md"))).to start_with("## Profile")
      expect(Dir.children(path_to("."))).to eq(["x.md"])
    end

    it "refuses unknown ones" do
      expect { described_class.start(frequenzy: 1) }.to raise_error(ArgumentError, /unknown keyword: :frequenzy/)
    end

    it "takes the ends of the allowed range, a Pathname, and both kinds of timer" do
      [{ frequency: 1 }, { frequency: 10_000 }, { output: Pathname(path_to("p")) },
       { signal: false }, { signal: nil }, { capture: :safepoint }, { capture: nil, signal: false },
       { capture: :safepoint, signal: false }].each do |arguments|
        expect(described_class.start(**arguments) { nil }).to be_a(Hash)
      end
    end
  end

  describe ".save", vm: false do
    let(:data) { described_class.start(mode: :wall) { sleep 0.03 } }

    it "goes by the extension or the format" do
      described_class.save(path_to("p.collapsed"), data)
      expect(File.read(path_to("p.collapsed"))).to match(/\A.+;.+ \d+\n/)
      described_class.save(Pathname(path_to("p.dat")), data, format: :text)
      expect(File.read(path_to("p.dat"))).to start_with("Total: ")
    end

    it "writes a pprof file that reads back as the same profile" do
      described_class.save(path_to("p.pb.gz"), data)
      read = read_profile(path_to("p.pb.gz"))
      expect(read.slice(:mode, :frequency, :duration_ns)).to eq(data.slice(:mode, :frequency, :duration_ns))
      expect(read[:samples]).to match_array(data[:samples])
    end

    it "knows reports by their extensions, and refuses what it never writes" do
      { "md" => /\A## Profile/, "json" => /\A\{"version":1,/, "html" => /\A<!doctype html>/i, "gv" => /\Adigraph/ }
        .each do |extension, start|
        described_class.save(path_to("p.#{extension}"), data)
        data.save(path_to("q.#{extension}"))
        texts = %w[p q].map { |name| File.read(path_to("#{name}.#{extension}")) }
        expect(texts.first).to match(start).and eq(texts.last)
      end
      %w[p.svg p.PNG].each do |name|
        message = "path: a profile is no .#{name[2..].downcase}: name another file, such as x.pb.gz or x.md, or give " \
                  "format:"
        expect { described_class.save(path_to(name), data) }.to raise_error(ArgumentError, message)
      end
      described_class.save(path_to("p.svg"), data, format: :pprof)
      expect(read_profile(path_to("p.svg"))[:samples]).to match_array(data[:samples])
    end

    it "writes what a changed Hash says" do
      blocked = data[:samples].select { |frames, _| frames.first.last == "[GVL blocked]" }
      described_class.save(path_to("p.pb.gz"), data.merge(samples: blocked))
      expect(read_profile(path_to("p.pb.gz"))[:samples]).to match_array(blocked)
      data[:aggregated_samples] = []
      described_class.save(path_to("p.collapsed"), data)
      expect(File.read(path_to("p.collapsed"))).to be_empty
    end

    it "takes a Hash that never was a profile" do
      described_class.save(path_to("p.collapsed"), made_profile)
      lines = File.readlines(path_to("p.collapsed"), chomp: true)
      expect(lines).to contain_exactly("<main>;Object#work 10000000", "<main>;[GVL blocked] 20000000")
    end

    it "takes a Hash that was marshalled" do
      described_class.save(path_to("p.txt"), Marshal.load(Marshal.dump(data)))
      expect(File.read(path_to("p.txt"))).to include("[GVL blocked]")
    end

    it "names what is wrong with a Hash" do
      frames = [["a.rb", "a"]]
      {
        { mode: :gpu } => /mode/, { frequency: -1 } => /frequency/, { duration_ns: "x" } => /duration_ns/,
        { samples: 1 } => /samples/, { samples: [1] } => /samples.*at 0/, { samples: [[[["a"]], 1]] } => /samples/,
        { samples: [[frames, -1, 1, 0]] } => /samples/, { samples: [[frames, nil]] } => /weight/,
        { samples: [[frames, 1, 1, 7]] } => /label set/, { label_sets: [1] } => /label_sets/,
        { samples: [[[["a.rb", 5]], 1]] } => /Strings/
      }.each do |change, message|
        expect { described_class.save(path_to("p"), made_profile.merge(change)) }
          .to raise_error(ArgumentError, message)
      end
      expect { described_class.save(path_to("p"), nil) }.to raise_error(ArgumentError, /data: .*not nil/)
      expect(File).not_to exist(path_to("p"))
    end

    it "raises Errno for a file that can't be written, ArgumentError for options that aren't any" do
      expect { described_class.save("/no/such/p", made_profile) }.to raise_error(Errno::ENOENT, %r{/no/such/p})
      { format: :svg, lines: nil }.each do |name, value|
        expect { described_class.save(path_to("p"), made_profile, name => value) }
          .to raise_error(ArgumentError, /\A#{name}: must be /)
      end
    end

    it "replaces a file at once and keeps its permissions" do
      path = write_file("p.txt", "old")
      File.chmod(0o640, path)
      described_class.save(path, made_profile)
      expect(File.stat(path).mode & 0o777).to eq(0o640)
      expect(Dir.children(directory)).to eq(["p.txt"])
    end
  end

  describe "an output that is an open descriptor" do
    it "is written to where it stands" do
      File.open(path_to("log"), "w") do |log|
        log.syswrite("before ")
        described_class.start(output: "/dev/fd/#{log.fileno}", format: :text) { nil }
        described_class.save("/dev/fd/#{log.fileno}", made_profile, format: :collapsed)
        log.syswrite("after")
      end
      expect(File.read(path_to("log"))).to match(/\Abefore Total: .*^<main>;Object#work \d+$.*after\z/m)
    end

    it "must be open for writing" do
      File.open(write_file("input", "")) do |input|
        ["/dev/fd/#{input.fileno}", "/proc/self/fd/987"].each do |output|
          expect { described_class.start(output:) }.to raise_error(ArgumentError, /\Aoutput: must be open for writing/)
        end
      end
    end
  end

  describe "an exception that another thread raises" do
    # How many came, of so many.
    def caught(work)
      program = <<~RUBY
        main = Thread.current
        interrupt = Class.new(StandardError)
        sent = 0
        caught = 0
        Thread.handle_interrupt(interrupt => :never) do
          sender = Thread.new { 15.times { sleep(rand / 50) && (sent += 1) && main.raise(interrupt) } }
          while sender.alive? || caught < sent
            begin
              Thread.handle_interrupt(interrupt => :immediate) { #{work} }
            rescue interrupt
              caught += 1
            end
          end
        end
        Rperf.stop
        print [caught, sent, Rperf.running?]
      RUBY
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program)
    end

    {
      "in a snapshot" => "Rperf.start(mode: :wall) unless Rperf.running?; 100.times { Rperf.snapshot(clear: true) }",
      "as sessions start and stop" => "Rperf.stop; 100.times { Rperf.start(mode: :wall) && Rperf.stop }",
      "as frames of new code are named" =>
        "Rperf.start(frequency: 10_000) unless Rperf.running?; 50.times { eval('def m = 1.then { 2.then { 3 } }; m') }"
    }.each do |time, work|
      it "comes #{time}" do
        outcome = caught(work)
        expect([outcome.stdout, outcome.stderr]).to eq(["[15, 15, false]", ""])
      end
    end
  end

  it "ends in a forked child, which can start its own" do
    described_class.start
    pid = fork do
      ended = !described_class.running? && described_class.stop.nil?
      exit!(ended && described_class.start { spin 0.02 }[:samples].any? ? 0 : 1)
    end
    expect(Process.wait2(pid).last).to be_success
    expect(described_class.stop).to be_a(Hash)
  end

  it "ends in a daemon, which can start its own", if: Process.respond_to?(:daemon) do
    program = <<~'RUBY'
      Rperf.start
      Process.daemon(true, true)
      ended = !Rperf.running? && Rperf.stop.nil?
      weight = Rperf.start(mode: :wall) { sleep 0.02 }[:samples].sum { |row| row[1] }
      File.write("daemon.new", [ended, weight > 15_000_000].inspect)
      File.rename("daemon.new", "daemon")
    RUBY
    run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program)
    wait_until("word from the daemon") { File.exist?(path_to("daemon")) }
    expect(File.read(path_to("daemon"))).to eq("[true, true]")
  end

  # Ruby 4.0 no longer allows it.
  it "lets other Ractors fork, or fail to, as they do alone" do
    program = <<~'RUBY'
      Rperf.start { nil } if defined?(Rperf)
      ractor = Ractor.new do
        # If the main Ractor isn't asleep yet, Ruby's child may wait for ever for a lock that it held.
        sleep(0.1)
        Process.wait2(fork { exit!(7) }).last.exitstatus
      rescue => e
        e.message
      end
      print ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    outcomes = [[], ["-I#{Commands::ROOT}/lib", "-rrperf"]].map do |profiler|
      outcome = run(ruby, "-W0", *profiler, "-e", program)
      [outcome.stdout, outcome.stderr]
    end
    said = RUBY_VERSION.to_i < 4 ? "7" : "can not fork from non-main Ractors"
    expect(outcomes).to eq([[said, ""]] * 2)
  end

  it "tells other Ractors that there is no session of theirs" do
    program = "ractor = Ractor.new { [Rperf.stop, Rperf.snapshot] }
               p ractor.respond_to?(:value) ? ractor.value : ractor.take"
    outcome = run(ruby, "-W0", "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program)
    expect([outcome.stdout, outcome.stderr]).to eq(["[nil, nil]\n", ""])
  end

  # By its CPU time, which other programs add little to. Aimed at are 15 ms.
  it "loads quickly", alone: true, emulated: false do
    times = Array.new(5) do
      run(ruby, "-e", <<~'RUBY', "#{Commands::ROOT}/lib/rperf").stdout.to_f
        started = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        require ARGV[0]
        print Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - started
      RUBY
    end
    expect(times.min).to be < 0.06
  end
end
