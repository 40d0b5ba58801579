# frozen_string_literal: true

require "fileutils"

# bin/support/ruby_tests/suite.rb, with tests of the example's own in the place of Ruby's.
RSpec.describe "the run of Ruby's own tests", vm: true do
  # The results of `test_always` and `test_at_times` differ if the run is profiled: the latter in the first two of four
  # runs, which are the whole run and the three that follow.
  runner = <<~RUBY
    only = ARGV[ARGV.index("-n") + 1] if ARGV.include?("-n")
    (only ? [only] : %w[test_never test_always test_at_times]).each do |test|
      has_failed = false
      if defined?(Rperf)
        count = File.exist?(test) ? File.size(test) : 0
        File.write(test, "x", mode: "a")
        has_failed = test == "test_always" || (test == "test_at_times" && count % 4 < 2)
      end
      puts "TestIt#\#{test} = 0.00 s"
      puts "  1) Failure:", "TestIt#\#{test} [test.rb:1]:" if has_failed
    end
  RUBY

  before do
    FileUtils.mkdir_p([path_to("include/ruby"), path_to("test")])
    major, minor = RUBY_VERSION.split(".")
    write_file("include/ruby/version.h",
               "#define RUBY_API_VERSION_MAJOR #{major}\n#define RUBY_API_VERSION_MINOR #{minor}\n")
    write_file("test/runner.rb", runner)
    write_file("test/test_it.rb", "")
  end

  it "names apart those whose results differ at times" do
    suite = File.join(Commands::ROOT, "bin/support/ruby_tests/suite.rb")
    outcome = run(ruby, suite, directory, "test/test_it.rb", limit: 300)
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 1])
    names = outcome.stdout.scan(/^differs(.*): TestIt#(\w+) \(interpreter, (\w+)\)(.*)/)
    expect(names).to contain_exactly(
      ["", "test_always", "cpu", ""], ["", "test_always", "wall", ""],
      [" at times", "test_at_times", "cpu", ": in 1 of 3 runs"],
      [" at times", "test_at_times", "wall", ": in 1 of 3 runs"]
    )
  end
end
