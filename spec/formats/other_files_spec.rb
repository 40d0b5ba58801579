# frozen_string_literal: true

require "zlib"

# What the command says of files that are no profiles, and of programs that aren't Ruby.
RSpec.describe "What rperf can't read" do
  reads = "rperf reads pprof files, as 'rperf record' writes them"

  before do
    work = ["/app/work.rb", "Work#run"]
    Rperf.save(path_to("rperf.data"), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: [[[work], 5, 1]] })
  end

  {
    "app.html" => "an HTML page; open it in a browser",
    "app.json" => "JSON; #{reads}",
    "app.collapsed" => "collapsed stacks; #{reads}",
    "app.txt" => "text; #{reads}",
    "app.md" => "text; #{reads}",
    "app.callgrind" => "a callgrind file; open it in KCachegrind",
    "app.dot" => "a graph in DOT; draw it with Graphviz' dot"
  }.each do |name, what|
    it "is said of a report, #{name}" do
      rperf("report", "-o", name)
      [["report", "--top", name], ["diff", name, "rperf.data"]].each do |arguments|
        outcome = rperf(*arguments)
        expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr])
          .to eq([2, "", "rperf: #{name}: not a pprof profile, but #{what}\n"])
      end
      expect { Rperf.load(path_to(name)) }.to raise_error(Rperf::Error, /not a pprof profile, but #{what}\z/)
    end
  end

  it "is said of an empty file, of Ruby code and of other profilers' files, packed ones too" do
    {
      "" => "the file is empty; record the profile again",
      "puts 1\n" => "not a pprof profile, but a Ruby program; 'rperf record ruby FILE' records a profile of it",
      "PERFILE2\0" => "not a pprof profile, but data of Linux perf; 'perf report' reads it",
      Marshal.dump({ version: 1.2 }) => "not a pprof profile, but a Marshal dump, as of stackprof; #{reads}",
      Zlib.gzip("main;work 1\n") => "not a pprof profile, but collapsed stacks; #{reads}"
    }.each do |content, line|
      path = content == "puts 1\n" ? "app.rb" : "app"
      File.binwrite(path_to(path), content)
      expect(rperf("report", path).stderr).to eq("rperf: #{path}: #{line}\n")
    end
  end

  it "is said of a program that doesn't run Ruby", if: RUBY_PLATFORM.include?("linux") do
    pid = Process.spawn("sleep", "60")
    [%w[attach -d 1], %w[stacks], %w[snapshot]].each do |command|
      outcome = rperf(*command, pid.to_s)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq(
        [1, "rperf: process #{pid} (sleep) doesn't run Ruby; 'rperf ps' lists the Ruby programs that can be asked\n"]
      )
    end
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "isn't stdin, which is called -" do
    content = File.binread(path_to("rperf.data"))
    expect(rperf("report", "--top", "-", input: content).stdout).to match(/100.0% +Work#run/)
    expect(rperf("diff", "rperf.data", "-", input: content).stdout).to match(/^Target: .*\(-\)$.*^Nothing differs\.$/m)
    expect(rperf("report", "-", "-", input: content).stderr)
      .to eq("rperf: '-' is stdin, which can be read only once\n")
    expect(rperf("report", "-", input: "").stderr).to eq("rperf: stdin: the file is empty; record the profile again\n")
  end
end
