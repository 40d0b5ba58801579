# frozen_string_literal: true

# Command lines as users type them, from the documentation, with the programs that they profile there.
RSpec.describe "The command line, used as documented" do
  include Guide

  # Only musl's doesn't say what it has handed out.
  malloc = RUBY_PLATFORM.include?("musl") ? "" : ".*malloc \\d+ \\+ "

  # The lines of a page of `rperf stat`, in this order.
  page_rows = [
    /^ Performance stats for '.+':$/, /^ +[\d,.]+ ms +user$/, /^ +[\d,.]+ ms +sys$/, /^ +[\d,.]+ ms +real$/,
    /^ +[\d,.]+ ms +[\d.]+% +CPU execution$/,
    /^ +[\d,.]+ ms +\[Ruby\] GC time \(\d+ collections?: \d+ minor, \d+ major\)$/,
    /^ +[\d,]+ +\[Ruby\] allocated objects$/, /^ +[\d,]+ +\[Ruby\] freed objects$/,
    /^ +\d+ MB +\[OS\] peak memory \(maxrss\)$/,
    # QEMU tells programs of no page that is resident.
    *(if Gem::Platform.local.os == "linux" && Commands::SLOWNESS == 1
        /^ +\d+ MB +\[OS\] memory at its end \(RSS\) = Ruby heap \d+ \+ #{malloc}.*files \d+.*$/
      end),
    /^ +[\d,]+ +\[OS\] context switches \([\d,]+ voluntary, [\d,]+ involuntary\)$/,
    %r{^ +\d+ MB +\[OS\] disk I/O \(\d+ MB read, \d+ MB write\)$},
    %r{^  [\d,]+ samples? / [\d,]+ triggers?, [\d.]+% profiler overhead$}
  ]
  # The least share of waiting, in percent, in a program that computes and waits. To compute takes an emulator longer.
  least_waiting = 20.0 / Commands::SLOWNESS

  # The heads of a text report.
  report_heads = [
    /^Total: [\d,.]+ms \((?:cpu|wall)\)$/, /^Samples: [\d,]+, Frequency: \d+Hz$/, /^Flat:$/, /^Cumulative:$/
  ]

  define_method(:be_a_page) { match(Regexp.new(page_rows.map(&:source).join("(?m:.*)"))) }
  define_method(:be_a_report) { match(/\A#{report_heads.map(&:source).join("(?m:.*)")}/) }
  define_method(:be_a_page_with_tables) do
    match(Regexp.new((page_rows + report_heads).map(&:source).join("(?m:.*)")))
  end

  it "shows with rperf --help that it is installed: its commands, and where there is more" do
    help = type("rperf --help").stdout
    expect(help).to match(/^Usage: rperf .*COMMAND/)
    expect(help.scan(/^  (\w+) {2}/).flatten).to include("record", "stat", "exec", "help")
    expect(help).to match(/^Run 'rperf help' for full documentation\.$/)
  end

  describe "rperf stat" do
    it "runs the command in wall mode and prints a page to stderr" do
      write_file("my_app.rb", Guide::APP)
      outcome = type("rperf stat ruby my_app.rb")
      expect(outcome.stdout).to eq("the app's own output\n")
      expect(outcome.stderr).to be_a_page
      expect(times(outcome.stderr)["[Ruby] GVL blocked (I/O, sleep)"].first).to be_between(80, 2000)
      expect(files).to be_empty
    end

    it "shows of a program that computes that it uses the CPU" do
      write_fib(35)
      page = type("rperf stat ruby fib.rb").stderr
      expect(page).to include(" Performance stats for 'ruby fib.rb':\n").and be_a_page
      cpu, share = times(page)["CPU execution"]
      expect(share).to be_between(90, 100)
      expect(cpu).to be_between(100, times(page)["real"].first)
      samples, triggers, overhead = page.match(%r{^  (.+) samples / (.+) triggers, (.+)% profiler}).captures
      expect([samples, triggers].map { |number| number.delete(",").to_i }).to all(be > 50)
      expect(overhead.to_f).to be < 20
    end

    it "shows of a program that computes and waits how much it does of either" do
      write_file("mixed.rb", Guide::MIXED)
      rows = times(type("rperf stat ruby mixed.rb").stderr)
      expect(rows["[Ruby] GVL blocked (I/O, sleep)"]).to match([be_between(220, 2500), be_between(least_waiting, 97)])
      expect(rows["CPU execution"]).to match([be > 20, be_between(3, 100 - least_waiting)])
    end

    it "adds tables of functions with --report" do
      # Long enough for some ticks on a busy machine, too.
      write_file("my_app.rb", Guide::APP.sub("200_000", "1_000_000"))
      page = type("rperf stat --report ruby my_app.rb").stderr
      expect(page).to be_a_page_with_tables
      # A busy machine computes for longer than the program waits.
      expect(table(page, "Flat").keys).to include(start_with("[GVL blocked]"))
      expect(table(page, "Cumulative").keys).to include("Object#wait (my_app.rb)", "Object#compute (my_app.rb)")
    end

    it "takes -o, -f, -m, --report and -v" do
      write_file("my_app.rb", Guide::APP)
      page = type("rperf stat -o stat.pb.gz -f 500 -m cpu --report -v ruby my_app.rb").stderr
      expect(page).to be_a_page_with_tables
      expect(page).to match(/^\[rperf\] mode=cpu frequency=500Hz$/)
      expect(page).to include("(cpu)\n", "Frequency: 500Hz\n")
      expect(read_profile(path_to("stat.pb.gz"))).to include(mode: :cpu, frequency: 500)
    end
  end

  describe "rperf exec" do
    before { write_file("my_app.rb", Guide::APP) }

    it "prints the page with tables, of wall time, and writes no file" do
      outcome = type("rperf exec ruby my_app.rb")
      expect(outcome.stdout).to eq("the app's own output\n")
      expect(outcome.stderr).to be_a_page_with_tables
      expect(outcome.stderr).to match(/^Total: .* \(wall\)$/)
      expect(files).to be_empty
    end

    it "takes -o, -f, -m and -v" do
      page = type("rperf exec -o exec.pb.gz -f 250 -m cpu -v ruby my_app.rb").stderr
      expect(page).to be_a_page_with_tables
      expect(page).to match(/^\[rperf\] mode=cpu frequency=250Hz$/)
      expect(read_profile(path_to("exec.pb.gz"))).to include(mode: :cpu, frequency: 250)
    end
  end

  describe "rperf record" do
    it "writes the CPU time to rperf.data, in pprof's format" do
      write_file("my_app.rb", Guide::APP)
      expect(type("rperf record ruby my_app.rb").stdout).to eq("the app's own output\n")
      expect(files).to eq(["rperf.data"])
      expect(read_profile(path_to("rperf.data"))).to include(mode: :cpu, frequency: 1000)
    end

    it "writes what tools for pprof's format can analyse" do
      write_fib(27)
      type("rperf record ruby fib.rb")
      data = read_profile(path_to("rperf.data"))
      leaves = data[:samples].sum { |frames, weight| frames.first == [path_to("fib.rb"), "Object#fib"] ? weight : 0 }
      expect(leaves).to be > data[:samples].sum { |row| row[1] } * 0.5
    end

    it "measures CPU time, or all time with -m wall" do
      write_file("my_app.rb", Guide::APP)
      type("rperf record ruby my_app.rb")
      cpu = read_profile(path_to("rperf.data"))
      type("rperf record -m wall ruby my_app.rb")
      wall = read_profile(path_to("rperf.data"))
      expect([cpu, wall].map { |data| data[:mode] }).to eq(%i[cpu wall])
      expect([cpu, wall].map { |data| weight_of(data, "compute") }).to all(be > 1_000_000)
      blocked = [cpu, wall].map { |data| weight_of(data, "GVL blocked") }
      expect(blocked).to match([0, be_between(80_000_000, 2_000_000_000)])
      expect(weight_of(cpu, "Object#wait")).to be < 50_000_000
    end

    it "goes by the extension of the file" do
      write_file("my_app.rb", Guide::APP)
      type("rperf record -o profile.pb.gz ruby my_app.rb")
      expect(read_profile(path_to("profile.pb.gz"))).to include(mode: :cpu)
      type("rperf record -o profile.collapsed ruby my_app.rb")
      expect(collapsed(File.read(path_to("profile.collapsed"))).map(&:first)).to include(start_with("<main>"))
      type("rperf record -o profile.txt ruby my_app.rb")
      expect(File.read(path_to("profile.txt"))).to be_a_report
      expect(files).to eq(%w[profile.collapsed profile.pb.gz profile.txt])
    end

    it "takes the format from --format, whatever the extension" do
      write_file("my_app.rb", Guide::APP)
      type("rperf record --format text -o profile.dat ruby my_app.rb")
      expect(File.read(path_to("profile.dat"))).to be_a_report
    end

    it "writes as text how long it was in which method" do
      write_fib(30)
      type("rperf record -o profile.txt ruby fib.rb")
      report = File.read(path_to("profile.txt"))
      expect(report).to match(/\ATotal: [\d,.]+ms \(cpu\)\nSamples: [\d,]+, Frequency: 1000Hz\n\nFlat:\n/)
      expect(table(report, "Flat").first).to match(["Object#fib (fib.rb)", [be > 20, be_between(70, 100)]])
      expect(table(report, "Cumulative").first(2).to_h)
        .to match("<main> (fib.rb)" => [be > 20, be > 70], "Object#fib (fib.rb)" => [be > 20, be > 70])
    end

    it "tells waiting from computing in a text of wall time" do
      write_file("mixed.rb", Guide::MIXED)
      type("rperf record -m wall -o wall_profile.txt ruby mixed.rb")
      report = File.read(path_to("wall_profile.txt"))
      expect(report).to match(/\ATotal: [\d,.]+ms \(wall\)\nSamples: [\d,]+, Frequency: 1000Hz\n/)
      expect(table(report, "Flat")).to include("[GVL blocked] (<GVL>)" => [be_between(220, 2500), be > least_waiting])
      all = table(report, "Cumulative").transform_values(&:first)
      expect(all).to include(
        "<main> (mixed.rb)", "block in <main> (mixed.rb)", "Integer#times (<internal:numeric>)",
        "Kernel#sleep (<C method>)", "[GVL blocked] (<GVL>)"
      )
      expect(all["Object#io_work (mixed.rb)"]).to be_between(220, 2500)
      expect(all["Object#cpu_work (mixed.rb)"]).to be > 20
      expect(all["<main> (mixed.rb)"]).to be >= all.fetch_values(*all.keys.grep(/\AObject#(io|cpu)_work/)).sum - 1
    end

    it "prints statistics to stderr with -v" do
      write_file("my_app.rb", Guide::APP)
      lines = type("rperf record -v ruby my_app.rb").stderr.lines.grep(/^\[rperf\] /)
      top = /\[rperf\] +[\d,.]+ ms +[\d.]+%  .+ \(.+\)\n/
      heads = [
        "[rperf] mode=cpu frequency=1000Hz\n",
        %r{\A\[rperf\] sampling: [\d,]+ calls, [\d.]+ms total, [\d.]+us/call avg\n\z},
        /\A\[rperf\] samples recorded: [\d,]+\n\z/, "[rperf] top 10 by flat:\n"
      ]
      expect(lines.first(4)).to match(heads)
      expect(lines.drop(4)).to all(match(top)).and have_attributes(size: be_between(1, 10))
    end

    it "prints a text profile with -p, as --format=text --output=/dev/stdout does" do
      write_file("my_app.rb", Guide::APP)
      ["-p", "--print", "--format=text --output=/dev/stdout"].each do |options|
        app, report = type("rperf record #{options} ruby my_app.rb").stdout.split("\n", 2)
        expect([app, report]).to match(["the app's own output", be_a_report])
      end
      expect(files).to be_empty
    end

    it "takes mode, frequency and file together" do
      write_file("my_app.rb", Guide::APP)
      type("rperf record -m wall -f 500 -o profile.pb.gz ruby my_app.rb")
      data = read_profile(path_to("profile.pb.gz"))
      expect(data).to include(mode: :wall, frequency: 500)
      expect(weight_of(data, "GVL blocked")).to be_between(80_000_000, 2_000_000_000)
    end
  end

  it "prints with rperf help what modes, formats and frames mean, and what to look for" do
    outcomes = %w[modes formats states].map { |topic| type("rperf help #{topic}") }
    expect(outcomes.map(&:stderr)).to all(be_empty)
    expect(outcomes.map(&:stdout).join).to include(
      "the CPU time of each thread", "all time of each thread", "pprof ", ".collapsed ", ".txt ",
      "[GVL blocked]", "[GVL wait]", "[GC marking]", "[GC sweeping]", "[GVL wait] is high", "[GC sweeping] is high"
    )
  end

  describe "RPERF_ENABLED=1" do
    # Runs the app with these variables; the directory then has these files.
    def enabled(variables, expected_files)
      write_file("my_app.rb", Guide::APP)
      outcome = type("RPERF_ENABLED=1 RUBYOPT=-rrperf #{variables} ruby my_app.rb")
      expect([outcome.stdout, files]).to eq(["the app's own output\n", expected_files])
      outcome.stderr
    end

    it "profiles a program from where it loads rperf" do
      expect(enabled("", ["rperf.data"])).to be_empty
      expect(read_profile(path_to("rperf.data"))).to include(mode: :cpu, frequency: 1000)
    end

    it "goes by RPERF_OUTPUT, RPERF_FREQUENCY, RPERF_MODE and RPERF_AGGREGATE" do
      variables = "RPERF_OUTPUT=profile.pb.gz RPERF_FREQUENCY=200 RPERF_MODE=wall RPERF_AGGREGATE=0"
      expect(enabled(variables, ["profile.pb.gz"])).to be_empty
      data = read_profile(path_to("profile.pb.gz"))
      expect(data).to include(mode: :wall, frequency: 200)
      expect(weight_of(data, "GVL blocked")).to be_between(80_000_000, 2_000_000_000)
    end

    {
      "pprof" => /\A\x1f\x8b/n, "collapsed" => /\A(?:<main> \d+\n)?<.+;.+ \d+\n/, "text" => /\ATotal: /
    }.each do |format, start|
      it "writes #{format} with RPERF_FORMAT=#{format}" do
        enabled("RPERF_OUTPUT=profile.any RPERF_FORMAT=#{format}", ["profile.any"])
        expect(File.binread(path_to("profile.any"))).to match(start)
      end
    end

    it "prints statistics with RPERF_VERBOSE=1" do
      expect(enabled("RPERF_VERBOSE=1", ["rperf.data"])).to match(/\A\[rperf\] mode=cpu frequency=1000Hz\n.*top 10/m)
    end

    it "prints the page of rperf stat with RPERF_STAT=1, tables with RPERF_STAT_REPORT=1" do
      page = enabled("RPERF_STAT=1 RPERF_STAT_COMMAND='my own words'", [])
      expect(page).to include(" Performance stats for 'my own words':\n").and be_a_page
      expect(page).not_to include("Flat:")
      expect(enabled("RPERF_STAT=1 RPERF_STAT_REPORT=1", [])).to be_a_page_with_tables
    end
  end
end
