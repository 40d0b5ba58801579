# frozen_string_literal: true

# Limits of memory that CI sets: of the program's peak, and of what stays from one profile to another.
RSpec.describe "Limits of memory" do
  keeping = lambda do |objects|
    <<~RUBY
      Item = Struct.new(*(1..70).map { |number| :"m\#{number}" })
      KEPT = Array.new(#{objects}) { Item.new }
      GC.start
      GC.start
    RUBY
  end

  describe "--max-rss" do
    it "ends with 3 and a line if a process had more, and writes the profile all the same" do
      outcome = rperf("record", "--max-rss", "5M", "-o", "app.pb.gz", ruby, "-e", "1 + 1")
      expect(outcome.status.exitstatus).to eq(3)
      line = /\Arperf: the peak RSS of the largest process was [\d.]+ MB, more than --max-rss allows \(5.00 MB\)\n\z/
      expect(outcome.messages).to match([/wrote app.pb.gz/, line])
      expect(File).to exist(path_to("app.pb.gz"))
      page = rperf("stat", "--max-rss=5M", ruby, "-e", "1 + 1")
      expect([page.status.exitstatus, page.stderr]).to match([3, /peak memory.*more than --max-rss/m])
      expect(rperf("exec", "--max-rss=5M", ruby, "-e", "1").status.exitstatus).to eq(3)
    end

    it "says nothing below it" do
      outcome = rperf("record", "--max-rss", "4G", "-o", "app.pb.gz", ruby, "-e", "1 + 1")
      expect([outcome.status.exitstatus, outcome.messages.size]).to eq([0, 1])
    end

    it "counts children that were waited for, each by itself" do
      child = %q(system(RbConfig.ruby, "--disable-gems", "-e", "'x' * 300_000_000"))
      outcome = rperf("record", "--max-rss", "250M", "-o", "app.pb.gz", ruby, "-e", child)
      expect([outcome.status.exitstatus, outcome.stderr]).to match([3, /--max-rss/])
    end

    it "counts no children of the program that became rperf, which may have been larger" do
      large = %w[--disable-gems -e] << "'x' * 300_000_000"
      command = rperf_command("record", "--max-rss", "250M", "-o", "app.pb.gz", ruby, "-e")
      run_one = lambda do |code|
        starter = "system(*#{[ruby, *large].inspect}); exec(*#{[*command, code].inspect})"
        run(ruby, "--disable-gems", "-e", starter)
      end
      outcome = run_one.call("system(RbConfig.ruby, *#{large.inspect})")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([3, /more than --max-rss/])
      expect(run_one.call("1 + 1").status.exitstatus).to eq(0)
    end

    it "leaves the program its own status" do
      outcome = rperf("record", "--max-rss", "5M", "-o", "app.pb.gz", ruby, "-e", "exit 7")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([7, /--max-rss/])
    end

    it "is a size" do
      outcome = rperf("record", "--max-rss", "lots", ruby, "-e", "1")
      expect([outcome.status.exitstatus, outcome.stderr])
        .to eq([2, "rperf: --max-rss must be a size, such as 500M or 2G, not 'lots'\n"])
    end

    it "ends several runs at the first one" do
      outcome = rperf("record", "--runs", "3", "--max-rss", "5M", "-o", "app.pb.gz", ruby, "-e", "1")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([3, /stopped after run 1 of 3: its peak RSS/])
    end
  end

  describe "rperf diff --fail-on of a value" do
    def keep(name, code)
      outcome = rperf("record", "--measure", "heap", "-o", name, ruby, "-e", code)
      expect(outcome.status.exitstatus).to eq(0), outcome.stderr
    end

    def diff(limit, base, target, *options) = rperf("diff", *options, "--fail-on", limit, base, target)

    it "ends with 3 if more stays than it allows, and with 0 within the noise" do
      keep("one.pb.gz", keeping.call(30_000))
      keep("same.pb.gz", keeping.call(30_000))
      keep("more.pb.gz", keeping.call(60_000))
      more = diff("inuse_space>20%", "one.pb.gz", "more.pb.gz")
      expect(more.status.exitstatus).to eq(3)
      expect(more.stderr)
        .to match(/\Arperf: more than --fail-on .*noise: inuse_space \+\d+\.\d% \(--fail-on 'inuse_space>20%'\)\n\z/)
      expect(more.stdout).to start_with("Type: inuse_space")
      expect(diff("inuse_space>10%", "one.pb.gz", "same.pb.gz").status.exitstatus).to eq(0)
      expect(diff("inuse_space>300%", "one.pb.gz", "more.pb.gz").status.exitstatus).to eq(0)
      both = rperf("diff", "--format", "json", "--fail-on", "inuse_space>300%", "--fail-on", "inuse_objects>20%",
                   "one.pb.gz", "more.pb.gz")
      expect([both.status.exitstatus, both.stderr]).to match([3, /inuse_objects \+/])
      expect(both.stderr).not_to include("inuse_space")
    end

    it "leaves --fail-above the values of the table" do
      expect(rperf("record", "-o", "long.pb.gz", "--measure", "heap", ruby, "-e", <<~RUBY).status).to be_success
        #{keeping.call(30_000)}
        finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1.5
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      RUBY
      keep("short.pb.gz", keeping.call(30_000))
      slower = diff("inuse_space>9000%", "short.pb.gz", "long.pb.gz", "--fail-above", "50")
      expect([slower.status.exitstatus, slower.stderr]).to match([3, /more than 50% slower/])
      expect(slower.stdout).not_to start_with("Type: inuse_space")
    end

    it "refuses what can't be told" do
      expect(rperf("record", "-o", "plain.pb.gz", ruby, "-e", "1").status).to be_success
      lacking = diff("inuse_space>5%", "plain.pb.gz", "plain.pb.gz")
      expect([lacking.status.exitstatus, lacking.stderr]).to match([2, /\Arperf: .*inuse_space/])
      { ["--calls"] => /--fail-on goes with .*not with --calls/, ["--fail-on", "5%"] => /either for calls or/,
        ["--tests"] => /--fail-on has no meaning for --tests/,
        ["--normalize", "total"] => /of a value has no meaning with --normalize total/ }.each do |options, message|
        refused = diff("inuse_space>5%", "plain.pb.gz", "plain.pb.gz", *options)
        expect([refused.status.exitstatus, refused.stderr]).to match([2, message])
      end
      wrong = diff("inuse_spac>5%", "plain.pb.gz", "plain.pb.gz")
      expect([wrong.status.exitstatus, wrong.stderr])
        .to match([2, /has no calls.*'inuse_spac' is no value: .*inuse_space/m])
      odd = diff("inuse_space>much", "plain.pb.gz", "plain.pb.gz")
      expect([odd.status.exitstatus,
              odd.stderr]).to match([2, /--fail-on must be a percentage.*not 'inuse_space>much'/])
    end
  end
end
