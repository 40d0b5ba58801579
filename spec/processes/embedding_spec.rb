# frozen_string_literal: true

require "rbconfig"

# Ruby may be a part of a program that ends it, and goes on.
config = RbConfig::CONFIG
compiler = config["CC"].split.first
shared = config["ENABLE_SHARED"] == "yes" && system("command -v #{compiler} >/dev/null")
missing = "no shared library of Ruby, or no #{compiler}" unless shared
RSpec.describe "A program that Ruby is a part of", vm: true, skip: missing do
  let(:program) do
    source = File.join(Commands::ROOT, "spec/fixtures/embedding.c")
    headers = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |it| "-I#{it}" }
    libraries = ["-L#{RbConfig::CONFIG["libdir"]}", "-Wl,-rpath,#{RbConfig::CONFIG["libdir"]}"]
    name = "-l#{RbConfig::CONFIG["RUBY_SO_NAME"]}"
    outcome = run(compiler, "-w", *headers, source, "-o", path_to("program"), *libraries, name)
    raise outcome.stderr unless outcome.status.success?

    path_to("program")
  end
  let(:load) { "$LOAD_PATH.unshift('#{File.join(Commands::ROOT, "lib")}'); require 'rperf'" }

  def work = "x = 0; Thread.new { loop { x += 1 } }; 300_000.times { x += 1 }"

  def embedded(*code, env: {}) = run(program, *code, env:)

  %i[cpu wall].each do |mode|
    it "outlives a session that nobody has stopped (#{mode})" do
      outcome = embedded(load, "Rperf.start(mode: :#{mode}, frequency: 10_000)", work)
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["works on: 0\n", "", 0])
    end

    it "has its profile when Ruby ends (#{mode})" do
      env = { "RPERF_ENABLED" => "1", "RPERF_MODE" => mode.to_s, "RPERF_OUTPUT" => path_to("p.pb.gz") }
      outcome = embedded(load, work, env:)
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["works on: 0\n", "", 0])
      expect(read_profile(path_to("p.pb.gz"))[:samples].size).to be > 0
    end
  end

  it "outlives a port" do
    outcome = embedded(load, "Rperf.listen", work)
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["works on: 0\n", "", 0])
  end
end
