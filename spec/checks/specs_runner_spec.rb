# frozen_string_literal: true

require "fileutils"

# bin/support/specs.rb, which runs the specs, in a project of the example's own.
RSpec.describe "the run of all specs" do
  head = "RSpec.configure { |c| c.define_derived_metadata { |it| it[:vm] = false unless it.key?(:vm) } }\n"

  before do
    FileUtils.mkdir_p([path_to("bin/support"), path_to("spec"), path_to("tmp")])
    scripts = %w[specs specs.rb].map { |name| File.join(Commands::ROOT, "bin/support", name) }
    FileUtils.cp_r(scripts, path_to("bin/support"))
  end

  # A file of specs with these examples.
  define_method(:write_spec) do |name, code|
    write_file("spec/#{name}_spec.rb", "#{head}RSpec.describe \"#{name}\" do\n#{code}\nend\n")
  end

  # How many seconds files took the last time: those of short ones share a process.
  def write_times(**seconds)
    write_file("tmp/spec-times.json", JSON.generate(seconds.transform_keys { |name| "spec/#{name}_spec.rb" }))
  end

  # Its outcome, and the lines of the results without times.
  def run_specs(*arguments, workers: 2, env: {}, &)
    outcome = run(ruby, "bin/support/specs.rb", *arguments, env: { "RPERF_TEST_WORKERS" => workers.to_s, **env }, &)
    path = path_to("tmp/results.tsv")
    [outcome, File.exist?(path) ? File.readlines(path).map { |line| line.split("\t").first(3) } : nil]
  end

  it "has files at once, and what is marked alone after them" do
    note = "File.write('order', \"%s\\n\", mode: 'a')"
    write_spec("one", "it('waits') { sleep 0.01 until File.exist?('two'); #{format(note, "one")} }")
    write_spec("two", "it('comes') { File.write('two', ''); #{format(note, "two")} }\n" \
                      "it('is slow', alone: true) { #{format(note, "alone")} }")
    write_times(one: 20, two: 10)
    outcome, results = run_specs
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    expect(results).to contain_exactly(
      ["passed", "spec/one_spec.rb", "one waits"], ["passed", "spec/two_spec.rb", "two comes"],
      ["passed", "spec/two_spec.rb", "two is slow"]
    )
    expect(File.readlines(path_to("order"), chomp: true).last).to eq("alone")
    lines = outcome.stdout.lines(chomp: true)
    expect(lines).to include(%r{\Aspec/one_spec\.rb: 1 examples, 0 failures \(\d+\.\d s\)\z},
                             /\Aalone: 1 examples, 0 failures/, "3 examples, 0 failures")
  end

  it "fails for a failure, and for a process that ends before it has run all" do
    write_spec("bad", "it('fails') { expect(1).to eq(2) }\nit('waits', skip: 'no time') {}")
    write_spec("dies", "it('kills') { Process.kill(:KILL, $$); sleep }")
    write_spec("good", "it('works') {}\nafter(:context) { exit!(3) }")
    write_times(bad: 20, dies: 20, good: 20)
    outcome, results = run_specs
    expect(outcome.status.exitstatus).to eq(1)
    expect(results.map(&:first).tally).to eq("failed" => 3, "pending" => 1)
    expect(results).to include(["failed", "spec/bad_spec.rb", "bad fails"],
                               ["failed", "spec/dies_spec.rb", %r{\Adid not run: \./spec/dies_spec\.rb\[}])
    expect(outcome.stdout).to match(/^  1 examples: no time$.*^ *1\) bad fails\n +Failure/m)
    expect(outcome.stdout.lines.last).to eq("4 examples, 3 failures, 1 pending\n")
  end

  it "writes what has failed to the file that RPERF_FAILURES names, and nothing where nothing has" do
    env = { "RPERF_FAILURES" => path_to("failures") }
    write_spec("one", "it('works') {}")
    write_spec("bad", "it('has it no more') { expect(ENV.key?('RPERF_FAILURES')).to be(false) }")
    run_specs(env:)
    expect(File.exist?(path_to("failures"))).to be(false)
    write_spec("bad", "it('fails') { expect(1).to eq(2) }")
    run_specs(env:)
    expect(File.read(path_to("failures"))).to match(/\A\nspec.bad_spec\.rb.*^ *1\) bad fails\n +Failure/m)
  end

  # An example that fails until it has been run so often.
  define_method(:fails) do |name, times|
    "it('#{name}') { File.write('#{name}', 'x', mode: 'a'); expect(File.size('#{name}')).to be > #{times} }"
  end

  it "gives a few failures a second try in the same order, and tells those that pass then" do
    order = "File.write('order', \"\#{$$} \#{RSpec.configuration.seed}\\n\", mode: 'a')"
    write_file(".rspec", "--order random\n")
    write_spec("bad", "#{fails("a", 1)}\nit('c') { #{order} }")
    write_spec("good", "it('works') { #{order} }")
    write_times(bad: 20, good: 20)
    outcome, results = run_specs
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    expect(results.map { |status, _, name| [status, name] })
      .to contain_exactly(["unsteady", "bad a"], ["passed", "bad c"], ["passed", "good works"])
    expect(outcome.stdout).to match(/^ *1\) bad a\n +Failure.*^  unsteady, passed twice .* beside it: bad a$/m)
    expect(outcome.stdout.lines.last).to eq("3 examples, 0 failures, 1 unsteady\n")
    seeds = File.readlines(path_to("order")).map { |line| line.split.last }.tally
    expect([File.size(path_to("a")), seeds.values.max]).to eq([3, 3])
  end

  it "fails if one doesn't pass twice, and tries none again if many have failed" do
    write_spec("bad", "#{fails("a", 1)}\n#{fails("b", 2)}")
    outcome, = run_specs
    expect([outcome.status.exitstatus, outcome.stdout.lines.last]).to eq([1, "2 examples, 2 failures\n"])
    write_spec("bad", Array.new(4) { |number| fails("c#{number}", 1) }.join("\n"))
    outcome, = run_specs
    expect([outcome.status.exitstatus, outcome.stdout.lines.last]).to eq([1, "4 examples, 4 failures\n"])
    expect(File.size(path_to("c0"))).to eq(1)
  end

  it "tries none again if a process has ended before its time, or a program of a failed example has crashed" do
    write_spec("bad", fails("a", 1))
    write_spec("dies", "it('kills') { Process.kill(:KILL, $$); sleep }")
    write_times(bad: 20, dies: 20)
    outcome, results = run_specs
    expect([outcome.status.exitstatus, results.map(&:first), File.size(path_to("a"))]).to eq([1, %w[failed failed], 1])
    File.delete(path_to("a"), path_to("spec/dies_spec.rb"))
    commands = File.join(Commands::ROOT, "spec/support/commands.rb")
    write_spec("bad", <<~RUBY)
      require #{commands.dump}
      Commands.send(:remove_const, :ROOT)
      Commands::ROOT = Dir.pwd
      include Commands
      before { |example| @example_id = example.id }
      it("crashes") do
        File.write(path = File.join(Commands::ROOT, "a"), "x", mode: "a")
        run(ruby, "-e", "Process.kill(:SEGV, $$); sleep")
        expect(File.size(path)).to be > 1
      end
    RUBY
    outcome, results = run_specs
    expect([outcome.status.exitstatus, results.map(&:first), File.size(path_to("a"))]).to eq([1, %w[failed], 1])
  end

  it "fails if RSpec does, though no example has" do
    write_spec("good", "it('works') {}")
    write_file(".rspec", "--require ./exits\n")
    write_file("exits.rb", "at_exit { exit!(7) unless ARGV.include?('--dry-run') || ARGV.include?('alone') }")
    outcome, results = run_specs
    expect([outcome.status.exitstatus, results.last.first]).to eq([1, "failed"])
    expect(results.last.last).to match(/RSpec failed \(pid \d+ exit 7\): spec/)
  end

  it "fails for what fails outside of examples, whether these fail or not" do
    { "1" => 1, "2" => 2 }.each do |expected, failures|
      write_spec("bad", "it('a') { expect(1).to eq(#{expected}) }\nafter(:context) { raise 'too late' }")
      outcome, results = run_specs
      expect([outcome.status.exitstatus, results.count { |status,| status == "failed" }]).to eq([1, failures])
      expect(results.last.last).to match(/RSpec failed \(pid \d+ exit 1\): spec/)
      expect(outcome.stdout).to include("too late")
    end
  end

  it "fails for a VM that crashes at the end, also beside an example that fails" do
    write_spec("bad", "it('a') { expect(1).to eq(2) }")
    write_file(".rspec", "--require ./crashes\n")
    write_file("crashes.rb", "at_exit { Process.kill(:KILL, $$) unless ARGV.include?('--dry-run') }")
    outcome, results = run_specs
    expect([outcome.status.exitstatus, results.map(&:first)]).to eq([1, %w[failed failed]])
    expect(results.last.last).to match(/RSpec failed \(pid \d+ SIGKILL/)
  end

  it "fails if there is nothing to run, or a file can't be loaded, and says why" do
    expect(run_specs.first.status.exitstatus).to eq(1)
    { "RSpec.describe(" => /syntax error|unexpected/, "raise 'no such'" => /no such/ }.each do |code, reason|
      write_file("spec/bad_spec.rb", code)
      outcome, results = run_specs
      expect([outcome.status.exitstatus, results]).to eq([1, nil])
      expect(outcome.stderr).to match(/\Athe specs can't be loaded:\n.*bad_spec\.rb.*#{reason}/m)
    end
  end

  it "has short files together in one process" do
    %w[a b c].each { |name| write_spec(name, "it('has a process') { File.write('pids', \"\#{$$}\\n\", mode: 'a') }") }
    write_times(a: 1, b: 1, c: 20)
    outcome, results = run_specs
    expect([outcome.status.exitstatus, outcome.stderr, results.size]).to eq([0, "", 3])
    expect(File.readlines(path_to("pids")).tally.values).to contain_exactly(1, 2)
    expect(outcome.stdout).to match(%r{^spec/[ab]_spec\.rb and 1 more: 2 examples, 0 failures})
    expect(JSON.parse(File.read(path_to("tmp/spec-times.json"))).values).to all(be_between(0.01, 19))
  end

  it "ends a process that takes too long, with all that it has started" do
    write_spec("hangs", "it('hangs') { File.write('child', spawn('sleep 300', pgroup: true)); sleep }")
    write_spec("good", "it('works') {}")
    write_times(hangs: 20, good: 10)
    outcome, results = run_specs(env: { "RPERF_TEST_LIMIT" => "4" })
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([1, ""])
    expect(results).to include(["passed", "spec/good_spec.rb", "good works"],
                               ["failed", "spec/hangs_spec.rb", %r{\ARSpec was ended after 4 s: spec/hangs}])
    expect_end_of(File.read(path_to("child")).to_i)
  end

  def expect_end_of(pid)
    wait_until("end of #{pid}") do
      Process.kill(0, pid) && File.exist?("/proc/#{pid}/stat") && File.read("/proc/#{pid}/stat").include?(") Z ")
    rescue Errno::ESRCH
      true
    end
  end

  %w[INT TERM HUP].each do |signal|
    it "ends its processes and says so in one line if SIG#{signal} ends it" do
      write_spec("quick", "it('works') {}")
      write_spec("slow", "it('waits') { File.write('pid', $$); sleep 2 }\nit('comes later') { sleep }")
      write_times(slow: 20, quick: 30)
      outcome, results = run_specs(workers: 1) do |pid|
        wait_until("the slow one") { File.exist?(path_to("pid")) && !File.empty?(path_to("pid")) }
        Process.kill(signal, pid)
      end
      expect([outcome.status.termsig, results]).to eq([Signal.list[signal], nil])
      expect(outcome.stderr).to eq("interrupted by SIG#{signal}: the specs that run are ended\n")
      expect(outcome.stdout.lines.size).to eq(1)
      expect_end_of(File.read(path_to("pid")).to_i)
    end
  end

  it "waits for another run of the same checkout, and says so" do
    write_spec("good", "it('works') {}")
    File.open(path_to("tmp/specs.lock"), File::RDWR | File::CREAT) do |lock|
      lock.flock(File::LOCK_EX)
      free = Thread.new do
        wait_until("line") { File.exist?(path_to(".stderr")) && File.read(path_to(".stderr")).include?("waiting") }
        sleep 0.5
        expect(File).not_to exist(path_to("tmp/specs"))
        lock.flock(File::LOCK_UN)
      end
      outcome, results = run_specs
      free.join
      expect(outcome.stderr).to match(%r{\Awaiting for another run of .* to end \(.*tmp/specs\.lock\)\n\z})
      expect([outcome.status.exitstatus, results.size]).to eq([0, 1])
    end
  end

  it "needs no locale" do
    write_spec("good", "it('has an é') {}\nit('fails: ü') { raise 'ö' }")
    outcome, results = run_specs(env: { "LC_ALL" => "C" })
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([1, ""])
    expect(results.map(&:last)).to contain_exactly("good has an é", "good fails: ü")
    expect(outcome.stdout.dup.force_encoding("UTF-8")).to include("fails: ü")
  end

  it "leaves out what has no mark with --vm, and takes files by their last times" do
    write_spec("one", "it('a', vm: true) {}\nit('b') {}")
    write_spec("two", "it('c', vm: true) {}")
    write_spec("other", "it('d') {}")
    write_times(one: 15, two: 25)
    outcome, results = run_specs("--vm", workers: 1)
    expect(results.map(&:last)).to eq(["two c", "one a"])
    expect(outcome.stdout).to start_with("spec/two_spec.rb: ")
    run_specs(workers: 1)
    expect(JSON.parse(File.read(path_to("tmp/spec-times.json"))).keys).to include("spec/other_spec.rb")
  end

  it "refuses numbers that are none" do
    outcome, = run_specs(workers: "x")
    expect([outcome.status.exitstatus, outcome.stderr])
      .to eq([1, "RPERF_TEST_WORKERS must be a number of processes, not 'x'\n"])
    outcome, = run_specs(env: { "RPERF_TEST_LIMIT" => "0" })
    expect([outcome.status.exitstatus, outcome.stderr])
      .to eq([1, "RPERF_TEST_LIMIT must be a number of seconds, not '0'\n"])
  end
end
