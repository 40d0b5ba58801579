# frozen_string_literal: true

require "fileutils"

# bin/support/specs.rb, which runs the specs, in a project of the example's own.
RSpec.describe "the run of all specs" do
  head = "RSpec.configure { |c| c.define_derived_metadata { |it| it[:vm] = false unless it.key?(:vm) } }\n"

  before do
    FileUtils.mkdir_p([in_folder("bin/support"), in_folder("spec"), in_folder("tmp")])
    scripts = %w[specs specs.rb].map { |name| File.join(Commands::ROOT, "bin/support", name) }
    FileUtils.cp_r(scripts, in_folder("bin/support"))
  end

  # A file of specs with these examples.
  define_method(:write_spec) do |name, code|
    write_file("spec/#{name}_spec.rb", "#{head}RSpec.describe \"#{name}\" do\n#{code}\nend\n")
  end

  # Its outcome, and the lines of the results without times.
  def run_specs(*arguments, workers: 2)
    outcome = run(ruby, "bin/support/specs.rb", *arguments, env: { "RPERF_TEST_WORKERS" => workers.to_s })
    path = in_folder("tmp/results.tsv")
    [outcome, File.exist?(path) ? File.readlines(path).map { |line| line.split("\t").first(3) } : nil]
  end

  it "has files at once, and what is marked alone after them" do
    note = "File.write('order', \"%s\\n\", mode: 'a')"
    write_spec("one", "it('waits') { sleep 0.01 until File.exist?('two'); #{format(note, "one")} }")
    write_spec("two", "it('comes') { File.write('two', ''); #{format(note, "two")} }\n" \
                      "it('is slow', alone: true) { #{format(note, "alone")} }")
    outcome, results = run_specs
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    expect(results).to contain_exactly(
      ["passed", "spec/one_spec.rb", "one waits"], ["passed", "spec/two_spec.rb", "two comes"],
      ["passed", "spec/two_spec.rb", "two is slow"]
    )
    expect(File.readlines(in_folder("order"), chomp: true).last).to eq("alone")
    lines = outcome.stdout.lines(chomp: true)
    expect(lines).to include(%r{\Aspec/one_spec\.rb: 1 examples, 0 failures \(\d+\.\d s\)\z},
                             /\Aalone: 1 examples, 0 failures/, "3 examples, 0 failures")
  end

  it "fails for a failure, and for a process that ends before it has run all" do
    write_spec("bad", "it('fails') { expect(1).to eq(2) }\nit('waits', skip: 'no time') {}")
    write_spec("dies", "it('kills') { Process.kill(:KILL, $$); sleep }")
    write_spec("good", "it('works') {}\nafter(:context) { exit!(3) }")
    outcome, results = run_specs
    expect(outcome.status.exitstatus).to eq(1)
    expect(results.map(&:first).tally).to eq("failed" => 3, "pending" => 1)
    expect(results).to include(["failed", "spec/bad_spec.rb", "bad fails"],
                               ["failed", "spec/dies_spec.rb", %r{\Adid not run: \./spec/dies_spec\.rb\[}])
    expect(outcome.stdout).to match(/^  1 examples: no time$.*^ *1\) bad fails\n +Failure/m)
    expect(outcome.stdout.lines.last).to eq("4 examples, 3 failures, 1 pending\n")
  end

  it "fails if RSpec does, though no example has" do
    write_spec("good", "it('works') {}")
    write_file(".rspec", "--require ./exits\n")
    write_file("exits.rb", "at_exit { exit!(7) unless ARGV.include?('--dry-run') || ARGV.include?('alone') }")
    outcome, results = run_specs
    expect([outcome.status.exitstatus, results.last.first]).to eq([1, "failed"])
    expect(results.last.last).to match(/RSpec failed \(pid \d+ exit 7\): spec/)
  end

  it "fails if there is nothing to run, or a file can't be loaded" do
    expect(run_specs.first.status.exitstatus).to eq(1)
    write_file("spec/bad_spec.rb", "RSpec.describe(")
    outcome, results = run_specs
    expect([outcome.status.exitstatus, outcome.stderr, results]).to match([1, /the specs can't be loaded:/, nil])
  end

  it "leaves out what has no mark with --vm, and takes files by their last times" do
    write_spec("one", "it('a', vm: true) {}\nit('b') {}")
    write_spec("two", "it('c', vm: true) {}")
    write_spec("other", "it('d') {}")
    write_file("tmp/spec-times.json", '{"spec/one_spec.rb":1.5,"spec/two_spec.rb":2.5}')
    outcome, results = run_specs("--vm", workers: 1)
    expect(results.map(&:last)).to eq(["two c", "one a"])
    expect(outcome.stdout).to start_with("spec/two_spec.rb: ")
    run_specs(workers: 1)
    expect(JSON.parse(File.read(in_folder("tmp/spec-times.json"))).keys).to include("spec/other_spec.rb")
  end

  it "refuses a number of processes that is none" do
    outcome, = run_specs(workers: "x")
    expect([outcome.status.exitstatus, outcome.stderr])
      .to eq([1, "RPERF_TEST_WORKERS must be a number of processes, not 'x'\n"])
  end
end
