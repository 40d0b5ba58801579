# frozen_string_literal: true

require "fileutils"
require_relative "../../bin/support/known_failures"

# What may fail on a Ruby that isn't released yet: bin/test.
RSpec.describe "the list of known failures" do
  one = { "file" => "spec/a_spec.rb", "example" => "A works", "reason" => "The VM has changed." }
  script = { "file" => "examples/a.rb", "reason" => "It needs more memory." }
  built = { "file" => "ext/rperf", "reason" => "A struct has another member." }

  # Of the check, with this list: whether it passes, and what it says.
  def check(list, *results)
    write_file("list.yml", list.to_yaml)
    write_file("results.tsv", results.map { |result| "#{result.join("\t")}\n" }.join)
    outcome = run(ruby, File.join(Commands::ROOT, "bin/support/known_failures.rb"), "list.yml", "results.tsv")
    [outcome.status.success?, outcome.stdout + outcome.stderr]
  end

  def passed(description = "A works") = ["passed", "spec/a_spec.rb", description, "0.1"]
  def failed(description = "A works") = ["failed", "spec/a_spec.rb", description, "0.1"]

  it "allows nothing if it is empty, or missing" do
    expect(check([], passed)).to match([true, /nothing fails/])
    expect(check([], passed("B"), failed)).to match([false, %r{fails, and isn't known to: spec/a_spec\.rb: A works$}])
    expect(KnownFailures.read(path_to("missing.yml"))).to eq([])
    write_file("empty.yml", "# Nothing fails.\n")
    expect(KnownFailures.read(path_to("empty.yml"))).to eq([])
  end

  it "allows what is on it, and says why" do
    said = %r{known to fail: spec/a_spec\.rb: A works\n    The VM has changed\.\n  known to fail: examples/a\.rb\n}
    expect(check([one, script], failed, passed("B"), ["failed", "examples/a.rb", ""])).to match([true, said])
  end

  it "must lose what passes, or doesn't run any more" do
    expect(check([one], passed)).to match([false, %r{passes, take it off the list: spec/a_spec\.rb: A works$}])
    expect(check([one], passed("A works well"))).to match([false, /doesn't run, and is on the list: .*A works$/])
    expect(check([one], ["pending", "spec/a_spec.rb", "A works", "0"])).to match([false, /doesn't run/])
  end

  it "allows what fails only sometimes to pass" do
    list = [one.merge("sometimes" => true)]
    expect(check(list, passed).first).to be(true)
    expect(check(list, failed)).to match([true, /known to fail/])
    expect(check(list, passed("B"))).to match([false, /doesn't run/])
  end

  it "counts an example as failed if one of the same description does" do
    expect(check([], passed, failed, passed).first).to be(false)
    expect(check([one], passed, failed, passed).first).to be(true)
  end

  it "asks for each program of examples/, where these can run" do
    FileUtils.mkdir_p(path_to("examples"))
    write_file("examples/a.rb", "")
    expect(check([], passed)).to match([false, %r{didn't run: examples/a\.rb$}])
    expect(check([], passed, ["passed", "examples/a.rb", ""]).first).to be(true)
    expect(check([built], ["failed", "ext/rperf", ""]).first).to be(true)
  end

  it "asks for nothing else where the extension is known not to be built" do
    expect(check([one, built], ["failed", "ext/rperf", ""])).to match([true, /A struct has another member/])
    expect(check([one], ["failed", "ext/rperf", ""])).to match([false, %r{fails, and isn't known to: ext/rperf$}])
    expect(check([built], passed)).to match([false, %r{doesn't run, and is on the list: ext/rperf$}])
  end

  it "is refused if nothing has run, or if it isn't one" do
    expect(check([])).to match([false, /nothing has run/])
    missing = run(ruby, File.join(Commands::ROOT, "bin/support/known_failures.rb"), "list.yml", "no.tsv")
    expect([missing.status.success?, missing.stderr]).to match([false, /no\.tsv is missing/])
    { [one.except("reason")] => /needs a file and a reason/, [one.merge("reson" => "x")] => /needs a file/,
      [one, one.dup] => /A works is there twice/, { "a" => 1 } => /must be a list/ }.each do |list, message|
      expect(check(list, passed)).to match([false, message])
    end
  end

  it "is right as it is, for each Ruby that has one" do
    Dir[File.join(Commands::ROOT, "spec/known_failures/*.yml")].each do |path|
      expect { KnownFailures.read(path) }.not_to raise_error
    end
  end
end
