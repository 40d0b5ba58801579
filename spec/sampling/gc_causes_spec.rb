# frozen_string_literal: true

# Why collections ran: the label %gc of their samples, and exact sums by cause.
RSpec.describe "Causes of collections", vm: true do
  # What the programs share. The VM counts the CPU time of collections, in ms.
  head = <<~'RUBY'
    Base = GC.stat
    def asked = GC.start
    def asked_for_young = GC.start(full_mark: false)
    def big = Array.new(20) { "x" * 4_000_000 }.size
    def small = Array.new(5_000) { Object.new }.size

    def profile(frequency: 1000, &) = Rperf.start(mode: :wall, frequency:, &)

    # Profiles the block; with what the VM has counted meanwhile.
    def measured(**, &work)
      GC.start
      counted = nil
      profile = profile(**) do
        before = GC.stat
        work.call
        after = GC.stat
        counted = %i[count time].to_h { |key| [key, after[key] - before[key]] }
      end
      [profile, counted]
    end

    def by_cause(profile, *keys) = profile.gc[:causes].to_h { |row| [row[:cause], row.slice(*keys)] }

    # In ns, by the value of the label; "" without it.
    def by_label(profile)
      rows = profile.top(by: "label:%gc", limit: nil, idle: true)
      rows.to_h { |row| [row[:name], row[:self]] }
    end
  RUBY

  define_method(:told_of) { |program, *options, **run| told("#{head}\n#{program}", *options, **run) }

  it "are those that the program gives reason for, and each has its line if it was asked for" do
    causes, lines = told_of(<<~'RUBY')
      profile, = measured do
        20.times { asked; 50.times { small }; big; asked_for_young }
      end
      lines = profile.gc[:causes].to_h { |row| [row[:cause], row[:method]] }
      puts [by_cause(profile, :collections), lines].to_json
    RUBY
    # Where there is reason for a major one, a minor one that is asked for becomes that.
    major, minor = ["major GC.start", "minor GC.start"].map { |it| causes.dig(it, "collections").to_i }
    expect(major).to be >= 20
    expect(major + minor).to eq(40)
    expect(causes.fetch("minor newobj")["collections"]).to be > 0
    expect(causes.keys).to include(/malloc/)
    expect(lines.fetch("major GC.start")).to eq("Object#asked").or eq("Object#asked_for_young")
    expect(lines.compact.keys - ["major GC.start", "minor GC.start"]).to eq([])
    young = told_of("profile, = measured { 5.times { asked_for_young } }; puts by_cause(profile, :collections).to_json")
    expect(young.fetch("minor GC.start")["collections"]).to be_between(3, 5)
  end

  it "are GC.start at the line that calls it, of nearly all samples of collections" do
    share, own, all, line, time, counted = told_of(<<~'RUBY')
      kept = Array.new(100_000) { Object.new }
      profile, counted = measured do
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
        while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
          sleep 0.01
          asked
        end
      end
      collected = profile.filter(tagfocus: "%gc=major GC.start")
      asked = collected.top(sort: :total, limit: nil).find { |row| row[:name] == "Object#asked" }
      states = profile.totals[:states]
      all = states[:"GC marking"] + states[:"GC sweeping"]
      row = profile.gc[:causes].first
      puts [row[:wall_ns].fdiv(profile.gc[:total][:wall_ns]), asked[:total], all, row[:line], row[:wall_ns],
            counted[:count] - row[:collections]].to_json
    RUBY
    expect(share).to be > 0.99
    expect(own).to be_within(all * 0.01).of(all)
    expect(line).to eq(2)
    # Samples add up to the exact time.
    expect(all).to be_within((time * 0.02) + 2_000_000).of(time)
    expect(counted).to be_between(0, 3)
  end

  it "are malloc of big Strings, and newobj of many small objects" do
    big, small = told_of(<<~'RUBY')
      # Strings of more bytes than slots: no slot is missing.
      profiles = [-> { 300.times { big } }, -> { 2_000.times { small } }].map { |work| measured(&work).first }
      puts profiles.map { |profile| profile.gc[:causes].to_h { |it| [it[:cause], it[:collections]] } }.to_json
    RUBY
    share = ->(causes, pattern) { causes.values_at(*causes.keys.grep(pattern)).sum.fdiv(causes.values.sum) }
    expect(big.values.sum).to be > 20
    expect(share[big, /malloc/]).to be > 0.9
    expect(small.values.sum).to be > 20
    expect(share[small, /newobj|nofree/]).to be > 0.9
  end

  it "add up to the time that the VM has counted, and to its collections" do
    total, counted, labels, states, count = told_of(<<~'RUBY')
      kept = []
      # The VM's clock is that of the process, so that it counts the work of ticks, too.
      profile, counted = measured(frequency: 100) do
        300.times { |i| 10.times { small }; kept << Array.new(300) { +"" }; big if i % 10 == 0; asked if i % 50 == 0 }
      end
      total = profile.gc[:total]
      sums = profile.gc[:causes].map { |row| row.values_at(:collections, :wall_ns, :marking_ns, :sweeping_ns, :cpu_ns, :pauses) }
      unless sums.transpose.map(&:sum) == total.values_at(:collections, :wall_ns, :marking_ns, :sweeping_ns, :cpu_ns, :pauses)
        raise "causes don't add up"
      end
      states = profile.totals[:states]
      puts [total, counted, by_label(profile), states, profile.gc[:causes].size].to_json
    RUBY
    expect(total["cpu_ns"] / 1e6).to be_within((counted["time"] * 0.05) + 5).of(counted["time"])
    expect(total["collections"]).to be_between(counted["count"], counted["count"] + 2)
    expect(total["marking_ns"] + total["sweeping_ns"]).to eq(total["wall_ns"])
    expect(total["pause_p50_ns"]).to be <= total["pause_p99_ns"]
    expect(total["pause_p99_ns"]).to be <= total["pause_max_ns"]
    expect(total["pauses"]).to be >= total["collections"]
    expect(count).to be > 2
    # All samples of collections have a cause, and nothing else has.
    of_collections = states["GC marking"] + states["GC sweeping"]
    known = labels.sum { |name, ns| name.match?(/\A(?:minor|major|other)/) ? ns : 0 }
    expect(known).to eq(of_collections)
    expect(labels.values.sum).to eq(states.values.sum)
    expect(known).to be_within((total["wall_ns"] * 0.02) + 2_000_000).of(total["wall_ns"])
  end

  it "are stress while GC.stress is on, and the program's work stays the same" do
    causes, results = told_of(<<~'RUBY')
      work = -> { 20.times.map { |i| [i, +"text #{i}", Object.new.frozen?] }.inspect }
      results = [work.call]
      profile, = measured do
        GC.stress = true
        results << work.call
        GC.stress = false
      end
      puts [by_cause(profile, :collections), results.uniq.size].to_json
    RUBY
    expect(results).to eq(1)
    expect(causes.fetch("major stress")["collections"]).to be > 50
    # Under stress a reason that was there before comes first.
    others = causes.except("major stress", "major force", "minor newobj", "minor malloc", "major GC.start")
    expect(others.sum { |_, it| it["collections"] }).to be <= 2
  end

  it "are told in cpu mode, and of snapshots that are cleared the sums of each" do
    first, seen, second = told_of(<<~'RUBY')
      Rperf.start(mode: :cpu, frequency: 1000)
      5.times { asked }
      first = Rperf.snapshot(clear: true)
      3.times { asked }
      seen = Rperf.snapshot
      2.times { asked }
      second = Rperf.stop
      puts [first, seen, second].map { |it| by_cause(it, :collections)["major GC.start"][:collections] }.to_json
    RUBY
    expect([first, seen, second]).to eq([5, 3, 5])
  end

  it "are in files, and those of several files and processes are added up" do
    program = write_file("program.rb", <<~'RUBY')
      3.times { GC.start }
      Process.wait(fork { 4.times { GC.start } })
    RUBY
    outcome = rperf("record", "-o", "p.pb.gz", ruby, program)
    expect(outcome.stderr).to eq("").or include("p.pb.gz")
    file = path_to("p.pb.gz")
    rows = ->(profile) { profile.gc[:causes].to_h { |it| [it[:cause], it[:collections]] } }
    expect(rows[Rperf.load(file)]["major GC.start"]).to eq(7)
    expect(rows[Rperf.merge(file, file)]["major GC.start"]).to eq(14)
    text = rperf("report", "--gc", "p.pb.gz").stdout
    expect(text).to match(/^ *[\d.]+ ms +[\d.]+% +7 .* major GC\.start \((?:program\.rb:[12]|asked for)\)$/)
    json = JSON.parse(rperf("report", "--gc", "--format", "json", "p.pb.gz").stdout)
    expect(json["gc"]["causes"].find { |it| it["cause"] == "major GC.start" }["collections"]).to eq(7)
  end

  it "are on the page of rperf stat, and absent where none ran" do
    page = rperf("stat", ruby, "-e", "9.times { GC.start }").stderr
    expect(page).to match(/^  \d+ collections in \d+ pauses: [\d.]+ ms = [\d.]+ ms marking \+ [\d.]+ ms sweeping$/)
    expect(page).to match(/^ *[\d.]+ [nµm]?s +[\d.]+% +9 .*major GC\.start/)
    quiet = told_of("GC.start; GC.disable; profile = profile { nil }; puts [profile.gc].to_json")
    expect(quiet).to eq([nil])
    told_of("GC.start; GC.disable; profile { nil }.save('quiet.pb.gz'); puts 1.to_json")
    outcome = rperf("report", "--gc", "quiet.pb.gz")
    expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /no collections/])
  end

  it "leave a program's own label %gc alone" do
    keys = told_of(<<~'RUBY')
      profile, = measured { Rperf.label("%gc": "mine") { 20.times { asked } } }
      puts profile[:label_sets].flat_map(&:keys).uniq.to_json
    RUBY
    expect(keys).to include("label.%gc", "%gc")
  end

  it "add up beside busy neighbours" do
    total, counted = told_of(<<~'RUBY')
      neighbours = Array.new(2) { spawn("exec yes > /dev/null") }
      begin
        profile, counted = measured(frequency: 100) { 50.times { 20.times { small }; asked } }
      ensure
        neighbours.each { |pid| Process.kill(:KILL, pid) }
        neighbours.each { |pid| Process.wait(pid) }
      end
      puts [profile.gc[:total], counted].to_json
    RUBY
    expect(total["cpu_ns"] / 1e6).to be_within((counted["time"] * 0.04) + 4).of(counted["time"])
    expect(total["collections"]).to be_between(counted["count"], counted["count"] + 2)
  end
end
