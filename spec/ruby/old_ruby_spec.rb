# frozen_string_literal: true

# An old Ruby is played by this one, which says that it is another.
RSpec.describe "an old or other Ruby" do
  def played(constants, env = {})
    shim = constants.map { |name, value| "Object.send(:remove_const, :#{name}); #{name} = #{value.inspect}.freeze" }
    path = write_file("shim.rb", shim.join("\n"))
    run(ruby, "-W0", "-r#{path}", "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "puts 'ran'", env:)
  end

  it "runs on without a profile under RPERF_ENABLED" do
    outcome = played({ RUBY_VERSION: "3.1.2" }, { "RPERF_ENABLED" => "1" })
    expect([outcome.stdout, outcome.status.exitstatus]).to eq(["ran\n", 0])
    expect(outcome.stderr)
      .to eq("rperf: Ruby 3.1.2 is too old: rperf needs Ruby >= 3.4; running without profiling\n")
  end

  it "can't load the API" do
    outcome = played({ RUBY_VERSION: "3.3.10" })
    expect(outcome.stdout).to be_empty
    expect(outcome.stderr).to include("rperf: Ruby 3.3.10 is too old: rperf needs Ruby >= 3.4 (LoadError)")
  end

  it "is told by its engine too" do
    expect(played({ RUBY_ENGINE: "jruby" }, { "RPERF_ENABLED" => "1" }).stderr)
      .to eq("rperf: rperf works with CRuby only, not with jruby; running without profiling\n")
  end

  it "gets one line from rperf record" do
    shim = write_file("shim.rb", "Object.send(:remove_const, :RUBY_VERSION); RUBY_VERSION = '2.7.0'")
    write_file("old-ruby", "#!/bin/sh\nRUBYOPT=\"-W0 -r#{shim} $RUBYOPT\" exec '#{ruby}' \"$@\"\n")
    File.chmod(0o755, path_to("old-ruby"))
    FileUtils.mv(shim, target = "/tmp/rperf-shim-#{Process.pid}.rb")
    write_file("old-ruby", File.read(path_to("old-ruby")).gsub(shim, target))
    outcome = rperf("record", "./old-ruby", "-e", "puts ENV['RUBYOPT'].include?('rperf '), 'ran'")
    expect(outcome.stdout).to end_with("ran\n")
    expect(outcome.messages).to contain_exactly(/Ruby 2\.7\.0 is too old/)
    expect(outcome.status.exitstatus).to eq(1)
  ensure
    FileUtils.rm_f(target) if target
  end

  # Endless methods, values left out of a Hash, anonymous arguments, `it`: what
  # would be a syntax error in Rubies from 2.5 on.
  it "can read the files that are loaded before it is told" do
    newer = /^\s*def [^\n]* = |\w:[,)]|\((\*{1,2}|&|\.\.\.)\)|\bit\.|\b_1\b|&\)/
    first = %w[names original version processes/launch errors inert cli launched].map { |name| "rperf/#{name}.rb" }
    ["rperf.rb", *first].each do |path|
      code = File.readlines(File.join(Commands::ROOT, "lib", path)).grep_v(/^\s*#/)
      expect(code.grep(newer)).to be_empty
    end
  end
end
