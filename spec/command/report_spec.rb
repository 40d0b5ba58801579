# frozen_string_literal: true

require "json"
require "pty"
require "io/console"
require "shellwords"

RSpec.describe "looking at profiles" do
  main = ["/app/main.rb", "<main>"]
  work = ["/app/work.rb", "Work#run"]
  sort = ["<C method>", "Array#sort"]
  wait = ["<GVL>", "[GVL blocked]"]

  # Writes a profile of wall time in which these stacks, deepest frame first, have so many samples of a millisecond.
  def save(name, stacks)
    rows = stacks.map { |frames, count| [frames, count * 1_000_000, 1, 0, count, count * 500_000] }
    Rperf.save(path_to(name), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
    name
  end

  before do
    save("rperf.data", [[[sort, work, main], 400], [[work, work, main], 100], [[wait, main], 500]])
  end

  def lines(...) = rperf("report", ...).stdout.force_encoding("UTF-8").lines.map(&:chomp)

  describe "rperf report" do
    it "prints the methods with the most, flat and cumulative" do
      outcome = rperf("report")
      expect(outcome.status).to be_success
      expect(outcome.stderr).to be_empty
      expect(outcome.stdout).to start_with("Type: wall, 1,000.0 ms, 1,000 samples, duration 1.000 s\n")
      expect(outcome.stdout).not_to include("\e[")
      expect(outcome.stdout.lines.last(5).join).to eq(<<~TEXT.gsub(/^_/, " "))
        _   self  self%    sum%       total  total%
        500.0 ms  50.0%   50.0%    500.0 ms   50.0%  [GVL blocked] (<GVL>)
        400.0 ms  40.0%   90.0%    400.0 ms   40.0%  Array#sort (<C method>)
        100.0 ms  10.0%  100.0%    500.0 ms   50.0%  Work#run (work.rb)
        _ 0.0 ms   0.0%  100.0%  1,000.0 ms  100.0%  <main> (main.rb)
      TEXT
    end

    it "shows other values, other rows and another order" do
      expect(lines("--value", "cpu")).to include(/\AType: cpu, 500.0 ms/)
      expect(lines("--sample-index", "0").last(4).first.split).to start_with("500", "50.0%")
      expect(lines("--sort", "total", "-n", "1").last).to end_with("<main> (main.rb)")
      # What it calls of C, too.
      expect(lines("--by", "gem").last(2)).to match([/500.0 ms .* \(application\)\z/, /500.0 ms .* <GVL>\z/])
      expect(lines("--by", "gem:c").last(3))
        .to match([/500.0 ms .* <GVL>\z/, /400.0 ms .* <C method>\z/, /100.0 ms .* \(application\)\z/])
      expect(lines("--by", "state").last(2)).to match([/500.0 ms.*GVL blocked/, /500.0 ms.*running/])
    end

    it "says that no sample has a label, rather than let its name be misspelt" do
      outcome = rperf("report", "--by", "label:endpiont")
      said = /\Arperf: no sample has a label endpiont; there are: .*%GVL.*\n\z/
      expect([outcome.status.exitstatus, outcome.stderr]).to match([0, said])
      expect(outcome.stdout.lines.last).to end_with("(no endpiont)\n")
    end

    it "says that no sample is in an op, and has all in one row" do
      outcome = rperf("report", "--by", "op")
      said = /\Arperf: no sample is in an op: 'rperf record -m wall --measure ops' takes them.*\n\z/
      expect([outcome.status.exitstatus, outcome.stderr]).to match([0, said])
      expect(outcome.stdout.lines.last).to match(/\A *1,000.0 ms +100.0% .*\(no op\)\n\z/)
      outcome = rperf("report", "--top", "--hide-ops")
      said = "rperf: --hide-ops matches nothing in the profile\n"
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, said])
    end

    it "filters, and tells of what matches nothing" do
      expect(lines("--focus", "Work", "--hide", "sort").last(2))
        .to match([/\A500.0 ms  50.0% .* Work#run/, /<main>/])
      expect(lines("--ignore", "Work")).to include(/of which 500.0 ms \(50.0%\) are left, 500 samples/)
      expect(lines("--tagfocus", "%GVL=blocked").last(2)).to match([/\[GVL blocked\]/, /<main>/])
      outcome = rperf("report", "--focus", "nobody")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, "rperf: --focus matches nothing in the profile\n"])
    end

    it "takes several conditions for labels, in diff, too: all of --tagfocus, and any of --tagignore" do
      both = %w[--tagfocus %GVL=blocked --tagfocus thread_seq=.]
      expect(lines(*both).last(2)).to match([/\[GVL blocked\]/, /<main>/])
      outcome = rperf("report", "--top", "--tagfocus", "%GVL=blocked", "--tagfocus", "%GVL=wait")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to eq([0, "rperf: --tagfocus matches nothing in the profile\n"])
      expect(lines("--tagignore", "%GVL=wait", "--tagignore", "%GVL=blocked"))
        .to include(/of which 500.0 ms \(50.0%\) are left/)
      outcome = rperf("report", "--tagfocus", "thread_seq=.", "--tagfocus", "a=(")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to match([2, /\Arperf: --tagfocus: '\(' is no valid regular expression: [^\n]+\n\z/])
      outcome = rperf("report", "--focus", "a", "--focus", "b")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /\Arperf: '--focus.*' is there twice/])
      sides = %w[--base-tagfocus %GVL=blocked --base-tagfocus thread_seq=. --target-tagfocus thread_seq=.]
      shown = rperf("diff", "--top", *sides, "rperf.data", "rperf.data").stdout
      expect(shown).to match(/^Base: +500.0 ms.*^Target: 1,000.0 ms/m)
      # Each of them matches something, but not what the other one leaves.
      sides = %w[--base-tagfocus %GVL=blocked --target-tagfocus thread_seq=. --focus Array#sort]
      outcome = rperf("diff", "--top", *sides, "rperf.data", "rperf.data")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to eq([0, "rperf: nothing of wall in the base passes the filters\n"])
    end

    it "prints the call tree, callers, and lines of source" do
      expect(lines("--tree").last(5)).to match([/100.0%.*  <main>/, /├─ Work#run/, /│  ├─ Array#sort/, /│  └─ Work#run/,
                                                /└─ \[GVL blocked\]/])
      expect(lines("--tree", "--bottom-up").grep(/Array#sort/).first).to match(/400.0 ms  40.0%  Array#sort/)
      expect(lines("--callers", "Array#sort").last(2)).to match(["  called by", /400.0 ms  40.0%  Work#run/])
      write_file("app.rb", "def work(limit)\n  Process.clock_gettime(:CLOCK_MONOTONIC) while limit\nend\n" \
                           "Thread.new { sleep 0.2; exit!(0) }\nwork(1)\n".sub(":CLOCK", "Process::CLOCK"))
      rperf("record", "-o", "app.pb.gz", ruby, "app.rb")
      shown = lines("--annotate", "app.rb", "app.pb.gz")
      expect(shown).to include(/\d ms +\d.* ms  2    Process.clock_gettime/, /1  def work\(limit\)/)
      expect(lines("--annotate", "Object#work", "app.pb.gz").last).to end_with("3  end")
    end

    it "prints the source of Ruby code only, whatever files a profile names" do
      code = "def work = 0.1.to_s while Process.clock_gettime(Process::CLOCK_MONOTONIC) < @end"
      scripts = { "secret.txt" => "key\n", "script" => "#!/usr/bin/env ruby\n", "Rakefile" => "task\n" }
      scripts.each { |name, text| write_file(name, text) }
      File.symlink("secret.txt", path_to("link.rb"))
      names = [*scripts.keys, "link.rb"]
      write_file("all.rb", "#{names}.each { |name| @end = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.1; " \
                           "eval(#{code.dump}, binding, name, 1); work }\n")
      expect(rperf("record", "-o", "all.pb.gz", ruby, "all.rb").status).to be_success
      page = ->(name) { rperf("report", "--annotate", name, "all.pb.gz").stdout }
      shown = names.to_h { |name| [name, page[name].scan(/key|env ruby|task/)] }
      expect(shown).to eq("secret.txt" => [], "script" => ["env ruby"], "Rakefile" => ["task"], "link.rb" => [])
      expect(page["secret.txt"]).to match(/^  not called a Ruby file, and no script .*secret.txt$/)
    end

    it "merges files and converts them" do
      rperf("report", "rperf.data", "rperf.data", "-o", "both.pb.gz")
      expect(lines("both.pb.gz").first).to start_with("Type: wall, 2,000.0 ms, 2,000 samples")
      stacks = rperf("report", "both.pb.gz", "--focus", "sort", "--format", "collapsed").stdout
      expect(stacks).to eq("<main>;Work#run;Array#sort 800000000\n")
      written = rperf("report", "both.pb.gz", "--focus", "sort", "--format", "collapsed", "-o", "-").stdout
      expect([written, File.exist?(path_to("-"))]).to eq([stacks, false])
      expect(lines("--text").first).to eq("Total: 1,000.0ms (wall)")
      expect(lines("--text", "--focus", "Work"))
        .to include("Total: 1,000.0ms (wall), of which 500.0ms (50.0%) are left",
                    "     400.0 ms  40.0%  Array#sort (<C method>)")
      report = JSON.parse(rperf("report", "--format", "json", "-n", "1").stdout)
      expect(report["top"].map { |row| row.values_at("name", "self") }).to eq([["[GVL blocked]", 500_000_000]])
    end

    it "writes what to paste into a pull request, in which no name is markup" do
      odd = ["a|b.rb", "</td>\n`@you` | <script>x</script>"]
      save("odd.pb.gz", [[[odd, main], 3], [[wait, odd, main], 1]])
      expect(rperf("report", "odd.pb.gz", "-o", "odd.md").stdout).to be_empty
      report = File.read(path_to("odd.md"))
      expect(report).to start_with("## Profile of `ruby`\n\nOf 4.0 ms (`wall`) went 75.0% into run")
      name = "``</td> `@you` | <script>x</script>``"
      expect(report).to include("\n1. 3.0 ms (75.0%)\n   - `<main>` `main.rb`\n   - #{name} `a|b.rb`\n")
      row = "| 3.0 ms | 75.0% | 4.0 ms | 100.0% | #{name.sub("|", "\\|")} | `a\\|b.rb` |\n"
      expect(report).to include("\n#{row}")
      expect(report.lines.last).to eq("| 1.0 ms | 25.0% | GVL blocked (I/O, sleep) | " \
                                      "#{name.sub("|", "\\|")} (`a\\|b.rb`) |\n")
      expect(lines("--format", "markdown", "--focus", "Nobody|Work", "-n", "1"))
        .to include(/\AFilters have left 500.0 ms \(50.0%\) of 1,000.0 ms \(`wall`\): 50.0% running\. /,
                    /\A\| 400.0 ms \| 40.0% .*`Array#sort`/, "2 more are not shown.")
    end

    it "gives programs the callers of a method, too" do
      report = JSON.parse(rperf("report", "--callers", "Array#sort", "--format", "json").stdout)
      expect(report["callers"].map { |row| row["callers"].map { |caller| caller["name"] } }).to eq([["Work#run"]])
      expect(JSON.parse(rperf("report", "--format", "json").stdout)).not_to include("callers")
    end

    it "writes every format by the extension or --format" do
      %w[md json html txt collapsed].each { |extension| rperf("report", "-o", "p.#{extension}") }
      starts = %w[md json html txt collapsed].map { |extension| File.read(path_to("p.#{extension}"))[0, 15] }
      expect(starts).to match([/\A## Profile/, /\A\{"version":1,"t/, /\A<!doctype html/i, /\ATotal: /, /\A<main>;/])
      expect(rperf("report", "--format", "html", "-o", "q").stderr).to match(/\Arperf: wrote .*q \(/)
      expect(File.read(path_to("q"))).to match(/\A<!doctype html/i)
      expect(rperf("report", "--html", "-o", "r.json").status).to be_success
      outcome = rperf("report", "-o", "p.PNG")
      expect(outcome.messages.first).to start_with("rperf: -o p.PNG: rperf writes no .png: .svg is a picture, ")
      expect([outcome.status.exitstatus, File.exist?(path_to("p.PNG"))]).to eq([2, false])
      expect(File.read(path_to("r.json"))).to match(/\A<!doctype html/i)
    end

    {
      %w[none.pb.gz] => "can't read none.pb.gz: there is no such file",
      %w[.] => "can't read .: it is a directory",
      %w[broken] => /broken: .*/,
      %w[--value x] => "there are no values named 'x'; the profile has samples, wall, cpu",
      %w[--focus (] => "--focus: '(' is no valid regular expression: unclosed group",
      %w[--tree --text] => "--text and --tree can't be combined: give one of them",
      %w[--by colour] => "--by must be method, class, file, dir, gem, gem:c, label:KEY, op, thread or state, not " \
                         "'colour'",
      %w[--callers Nobody] => "no method in the profile matches 'Nobody'",
      %w[--callers Nobody --format json] => "no method in the profile matches 'Nobody'",
      %w[--ignore Nobody|work --callers work] => "no method in what the filters leave matches 'work'",
      %w[-n -1] => "-n must be a number of rows, 0 for all, not '-1'",
      %w[--top -o x] => "-o x: --top writes .txt",
      %w[--tree -o x.json] => "-o x.json: --tree writes .txt",
      %w[--top --html -o x.html] => "--html and --top can't be combined: give one of them",
      %w[--web -o x.txt] => "-o goes with --html, --top, --text, --methods, --tree, --annotate, --format, --dot, " \
                            "--svg, --boot, --tests, --ops, --gc or --callers, not with --web",
      %w[--format svg] => "--format must be pprof, collapsed, text, markdown, json, html, dot, callgrind or " \
                          "spans, not 'svg'",
      %w[--least 5] => "--least goes with --tree",
      %w[--callers Work --lines] => "--lines goes with --text, not with --callers",
      %w[--lines -o x.collapsed] => "--lines goes with --text",
      %w[--format pprof --lines -o x] => "--lines goes with --text, not with --format pprof",
      %w[--html -n 3] => "-n goes with --top, --methods, --tree, --boot, --tests, --ops, --gc, --callers, " \
                         "--annotate, --format json or --format markdown, not with --html",
      %w[--tree --sort total] => "--sort goes with --top, --methods, --boot, --tests, --ops or --format json, " \
                                 "not with --tree",
      %w[--format json --by gem] => "--by goes with --top, --methods, --dot or --svg, not with --format json",
      %w[--source] => "--source goes with --html or --web"
    }.each do |arguments, message|
      it "refuses #{arguments.join(" ")} in one line" do
        write_file("broken", "no profile at all")
        outcome = rperf("report", *arguments)
        expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
        expect(outcome.stderr).to match(/\Arperf: #{message.is_a?(Regexp) ? message : Regexp.escape(message)}\n\z/)
      end
    end

    it "prints what a file has as one line, also in messages" do
      # Of profile.proto: numbers, and fields that have a length.
      number = ->(tag, value) { [tag << 3, value].pack("CC") }
      field = ->(tag, content) { [(tag << 3) | 2, content.bytesize].pack("CC") + content.b }
      texts = ["", "red\e[31m\ntype", "u\nnit", "a\nb\e[2J"].map { |text| field[6, text] }
      location = field[4, number[1, 1] + field[4, number[1, 1]]] + field[5, number[1, 1] + number[2, 3]]
      sample = field[1, number[1, 1] + number[2, 2]] + field[2, number[1, 1] + number[2, 7]]
      File.binwrite(path_to("odd"), sample + location + texts.join)
      expect(lines("odd").last).to eq("7 u nit  100.0%  100.0%  7 u nit  100.0%  a b [2J")
      expect(lines("--text", "odd").first).to eq("Total: 7 u nit (red [31m type)")
      expect(rperf("diff", "odd", "rperf.data").stderr).to match(%r{\Arperf: .* red \[31m type/u nit, .*\n\z})
    end

    it "says what to do where there is no profile yet" do
      File.delete(path_to("rperf.data"))
      expect(rperf("report").stderr)
        .to eq("rperf: can't read rperf.data: there is no such file; 'rperf record' writes one\n")
    end

    it "does not mind a reader that has seen enough" do
      command = Shellwords.join(rperf_command("report", "--format", "collapsed"))
      outcome = run("sh", "-c", "#{command} | true; echo ended")
      expect([outcome.stdout, outcome.stderr]).to eq(["ended\n", ""])
    end

    # The output on a terminal of this size.
    def on_terminal(rows, columns, env = {}, *options)
      PTY.open do |screen, terminal|
        terminal.winsize = [rows, columns]
        env = { "TERM" => "xterm", "PAGER" => nil, "NO_COLOR" => nil, "LESS" => nil, **env }
        command = rperf_command("report", "--top", *options)
        pid = Process.spawn(env, *command, chdir: directory, in: terminal, out: terminal, err: terminal)
        terminal.close
        text = +""
        begin
          loop { text << screen.readpartial(4096) }
        rescue EOFError, Errno::EIO
          Process.wait(pid)
        end
        text.delete("\r").force_encoding("UTF-8")
      end
    end

    it "fits terminals, in colour unless NO_COLOR says otherwise" do
      expect(on_terminal(40, 67, { "NO_COLOR" => "1" }, "--full-path").lines.last(2))
        .to match(["100.0 ms  10.0%    500.0 ms   50.0%  Work#run (/app/work.rb)\n", /<main> .*main.rb\)$/])
      expect(on_terminal(40, 100)).to include("\e[1;31m500.0 ms")
    end

    it "takes a pager where the terminal is too short" do
      expect(on_terminal(4, 100, "PAGER" => "sed 's/^/paged: /'").lines).to all(start_with("paged: "))
      expect(on_terminal(40, 100, "PAGER" => "sed 's/^/paged: /'")).not_to include("paged: ")
      expect(on_terminal(4, 100, "PAGER" => "no-such-pager")).to include("<main>")
    end
  end

  describe "rperf diff" do
    before do
      save("same.pb.gz", [[[sort, work, main], 410], [[work, work, main], 95], [[wait, main], 505]])
      save("slow.pb.gz", [[[sort, work, main], 800], [[work, work, main], 100], [[wait, main], 500]])
    end

    it "finds what got slower and takes the rest for noise" do
      outcome = rperf("diff", "rperf.data", "slow.pb.gz")
      expect(outcome.status).to be_success
      expect(outcome.stdout).to eq(<<~TEXT)
        Type: wall
        Base:   1,000.0 ms, 1,000 samples (rperf.data)
        Target: 1,400.0 ms, 1,400 samples (slow.pb.gz)
        Total:  +400.0 ms (+40.0%), slower

            delta   delta%      base    target
        +400.0 ms  +100.0%  400.0 ms  800.0 ms  slower  Array#sort (<C method>)
      TEXT
      expect(rperf("diff", "--text", "slow.pb.gz", "rperf.data").stdout).to match(/^Faster:\n.*\n-400.0 ms/)
      expect(rperf("diff", "rperf.data", "same.pb.gz").stdout).not_to match(/slower|faster/)
      expect(rperf("diff", "rperf.data", "rperf.data").stdout).to end_with("no change\n\nNothing differs.\n")
    end

    it "fails where something got slower by more than allowed" do
      outcome = rperf("diff", "--fail-above", "10", "rperf.data", "slow.pb.gz")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([3, <<~TEXT])
        rperf: more than 10% slower, beyond the noise: the total (+40.0%), Array#sort (+100.0%)
        rperf: each side is one run: only several (rperf record --runs) tell what differs from run to run
      TEXT
      [["200", "slow.pb.gz"], ["0", "same.pb.gz"]].each do |percent, file|
        expect(rperf("diff", "--fail-above", percent, "rperf.data", file).status).to be_success
      end
    end

    it "can't tell where a filter leaves nothing, or where a run is given twice" do
      runs = %w[--base rperf.data same.pb.gz --target slow.pb.gz]
      outcome = rperf("diff", "--top", "--fail-above", "10", "--focus", "Typo", *runs)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([2, <<~TEXT])
        rperf: --focus matches nothing in the profiles
        rperf: --fail-above can't tell: there is nothing to compare
      TEXT
      expect(rperf("diff", "--top", "--fail-above", "900", "--hide", "Typo", *runs).status).to be_success
      outcome = rperf("diff", "--top", "--base", "rperf.data", "./rperf.data", "--target", "slow.pb.gz")
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, <<~TEXT])
        rperf: ./rperf.data is given twice for one side: the noise between runs looks smaller than it is
      TEXT
    end

    it "writes what to paste into a pull request" do
      rperf("diff", "rperf.data", "slow.pb.gz", "-o", "diff.md")
      expect(File.read(path_to("diff.md"))).to eq(<<~MARKDOWN)
        ## Comparison

        The total (`wall`): +400.0 ms (+40.0%), slower.

        - Base: 1,000.0 ms (`rperf.data`)
        - Target: 1,400.0 ms (`slow.pb.gz`)

        ### Slower

        | delta | delta% | base | target | method | file |
        | --: | --: | --: | --: | --- | --- |
        | +400.0 ms | +100.0% | 400.0 ms | 800.0 ms | `Array#sort` | `<C method>` |

        ### Faster

        Nothing beyond the noise.
      MARKDOWN
      outcome = rperf("diff", "--format", "markdown", "--fail-above", "10", "rperf.data", "same.pb.gz")
      expect([outcome.status.exitstatus, outcome.stdout.lines.last]).to eq([0, "3 methods differ within the noise.\n"])
    end

    it "writes differences for programs" do
      outcome = rperf("diff", "--format", "json", "-n", "1", "--fail-above", "10", "rperf.data", "slow.pb.gz")
      expect(outcome.status.exitstatus).to eq(3)
      cut = JSON.parse(rperf("diff", "--format", "json", "-n", "1", "rperf.data", "same.pb.gz").stdout)
      expect([cut["row_count"], cut["rows"].size]).to eq([3, 1])
      expect(JSON.parse(outcome.stdout)["rows"]).to eq(
        [{ "name" => "Array#sort", "path" => "<C method>", "short_path" => "<C method>",
           "base_path" => "<C method>", "matched" => "path", "base" => 400_000_000, "target" => 800_000_000,
           "delta" => 400_000_000, "percent" => 100.0, "change" => "slower" }]
      )
      %w[json html].each { |extension| rperf("diff", "rperf.data", "slow.pb.gz", "-o", "diff.#{extension}") }
      expect(%w[json html].map { |extension| File.read(path_to("diff.#{extension}"))[0, 9] })
        .to match(["{\"version", /\A<!doctype/i])
    end

    it "compares groups of runs, scaled if asked for" do
      outcome = rperf("diff", "--base", "rperf.data", "same.pb.gz", "--target", "slow.pb.gz", "slow.pb.gz",
                      "--normalize", "total")
      expect(outcome.stdout).to include(", mean of 2 runs, 2,800 samples (slow.pb.gz, slow.pb.gz)\n",
                                        "Scaled: each run as if it had the base's total\n", "(0.0%), no change\n")
      expect(outcome.stdout).to match(/slower  Array#sort/)
    end

    {
      [] => "two profiles are needed: rperf diff BASE TARGET",
      %w[a b c] => "for more than two profiles, say which side each is on: rperf diff --base FILES --target FILES",
      %w[--base a] => "--base and --target go together",
      %w[--fail-above x a b] => "--fail-above must be a percentage, as 5, not 'x'",
      %w[--format svg a b] => "--format must be markdown, json or html, not 'svg'",
      %w[--top -o x a b] => "-o goes with --html or --format, not with --top",
      %w[--normalize x a b] => "--normalize must be total, duration, requests, label:KEY or none, not 'x'",
      %w[--html -n 3 a b] => "-n goes with --top, --text, --format or --calls, not with --html",
      %w[--fail-above 5 --web a b] => "--fail-above goes with --top, --text, --format or --html, not with --web",
      %w[-o x.txt a b] => "-o x.txt: rperf diff writes .md, .json and .html, unless --format says which of them it is",
      %w[--text -o x a b] => "-o goes with --html or --format, not with --text",
      %w[--normalize label:request rperf.data rperf.data] =>
        "the profiles can't be normalised: one has no samples with the label"
    }.each do |arguments, message|
      it "refuses #{["diff", *arguments].join(" ")} in one line" do
        outcome = rperf("diff", *arguments)
        expect([outcome.status.exitstatus, outcome.stderr]).to eq([2, "rperf: #{message}\n"])
      end
    end
  end

  describe "rperf record --runs" do
    it "writes a profile for each run" do
      write_file("app.rb", "puts 1 if (1..300_000).sum { |n| n % 7 } > 0")
      outcome = rperf("record", "--runs", "2", "-o", "app.pb.gz", ruby, "app.rb")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, "1\n1\n"])
      expect(outcome.stderr.lines.last).to eq("rperf: wrote 2 profiles: app.1.pb.gz to app.2.pb.gz\n")
      expect(Dir.children(directory)).to include("app.1.pb.gz", "app.2.pb.gz")
      expect(Dir.children(directory)).not_to include("app.pb.gz")
    end

    it "says where they are" do
      Dir.mkdir(path_to("profiles"))
      outcome = rperf("record", "--runs", "2", "-o", "profiles/app.pb.gz", ruby, "-e", "1")
      expect(outcome.stderr.lines.last).to eq("rperf: wrote 2 profiles: profiles/app.1.pb.gz to app.2.pb.gz\n")
    end

    it "ends with the first run that fails" do
      outcome = rperf("record", "--runs", "3", ruby, "-e", "exit 7")
      expect([outcome.status.exitstatus, Dir.children(directory).grep(/rperf\.\d/)]).to eq([7, ["rperf.1.data"]])
      expect(outcome.stderr.lines.last).to eq("rperf: stopped after run 1 of 3: the program exited with status 7\n")
    end

    it "says that a run was ended by a signal, and ends likewise" do
      write_file("app.rb", "File.exist?('once') ? Process.kill(:KILL, $$) : File.write('once', '')")
      outcome = rperf("record", "--runs", "3", ruby, "app.rb")
      expect(outcome.status.termsig).to eq(Signal.list["KILL"])
      expect(outcome.stderr.lines.last).to eq("rperf: stopped after run 2 of 3: the program was ended by SIGKILL\n")
    end

    it "needs files to write" do
      %w[0 1001 x].each do |runs|
        expect(rperf("record", "--runs", runs, "true").stderr)
          .to eq("rperf: --runs must be a whole number from 1 to 1000, not '#{runs}'\n")
      end
      expect(rperf("record", "--runs", "2", "-p", "true").stderr).to start_with("rperf: --runs writes several files")
    end
  end
end
