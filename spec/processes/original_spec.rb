# frozen_string_literal: true

require "fileutils"

# RubyGems' rperf is another project, with the module Rperf: lib/rperf/names.rb and lib/rperf/original.rb. Ours is
# renamed here, as CONTRIBUTING.md says.
RSpec.describe "the original rperf" do
  told = "is the original rperf, another project with the same module: a program can have one of the two"

  # What a program prints, and its lines of ours.
  def seen(*command, env: {})
    outcome = run(*command, env: gem_environment.merge(env))
    [outcome.stdout.lines(chomp: true), outcome.stderr.lines(chomp: true).grep(/rperf: /)]
  end

  def version_in(*arguments) = seen(ruby, *arguments, "-e", "puts Rperf::VERSION")

  it "and this one, under another name, are installed in either order, and each answers to its names" do
    [own_gem("rperf-x"), original_gem].permutation do |gems|
      FileUtils.rm_rf(gem_home)
      gems.each { |path| install_gem(path) }
      expect(seen("#{gem_home}/bin/rperf").first).to eq(["the original 0.9.0"])
      expect(seen("#{gem_home}/bin/rperf-x", "--version")).to eq([["rperf #{Rperf::VERSION}"], []])
      expect(version_in("-rrperf")).to eq([["0.9.0"], []])
      expect(version_in("-rrperf-x")).to eq([[Rperf::VERSION], []])
    end
  end

  it "isn't loaded where this one is, nor this one where the original is" do
    [own_gem("rperf-x"), original_gem].each { |path| install_gem(path) }
    expect(version_in("-rrperf-x", "-rrperf")).to eq([[Rperf::VERSION], []])
    refused = match([[], [/: rperf: the gem rperf 0\.9\.0 \(.*\) #{told} \(LoadError\)\z/]])
    expect(version_in("-rrperf", "-rrperf-x")).to refused
    expect(seen(ruby, "-e", "gem 'rperf'; require 'rperf-x'; puts Rperf::VERSION")).to refused
    write_file("Gemfile", "gem 'rperf'\ngem 'rperf-x'\n")
    program = "require 'bundler/setup'; Bundler.require; puts Rperf::VERSION"
    expect(seen(ruby, "-e", program))
      .to match([[], [/rperf: the gem rperf 0\.9\.0 \(.*\) #{told}\z/, / #{told} \(LoadError\)\z/]])
  end

  it "is told without RubyGems, too, and a program that must run does" do
    original_gem
    arguments = ["--disable-gems", "-I#{path_to("original/lib")}", "-rrperf", "-r#{Commands::ROOT}/lib/rperf"]
    line = "rperf: the Rperf 0.9.0 that the program has loaded #{told}"
    expect(version_in(*arguments)).to match([[], [/: #{line} \(LoadError\)\z/]])
    outcome = run(ruby, *arguments, "-e", "puts Rperf::VERSION; Rperf.start", env: { "RPERF_ENABLED" => "1" })
    expect([outcome.stdout, outcome.stderr])
      .to eq(["0.9.0\nthe original starts\n", "#{line}; running without profiling\n"])
  end

  it "gives way to this one in a program that the command runs, wherever that finds it" do
    [own_gem("rperf-x"), original_gem].each { |path| install_gem(path) }
    write_file("Gemfile", "gem 'rperf'\n")
    program = "require 'bundler/setup'; Bundler.require; require 'rperf/rack'; p Rperf::VERSION, Rperf.running?"
    command = ["record", "-o", "p.pb.gz", ruby]
    ours = match([[Rperf::VERSION.inspect, "true"], [/\Arperf: wrote p\.pb\.gz/]])
    FileUtils.mkdir_p(path_to("with blank"))
    FileUtils.cp_r(%w[exe lib].map { |name| path_to("own/#{name}") }, path_to("with blank"))
    [["#{gem_home}/bin/rperf-x"], [ruby, path_to("with blank/exe/rperf-x")]].each do |rperf|
      expect(seen(*rperf, *command, "-e", program)).to ours
      expect(seen(*rperf, *command, "-I#{path_to("original/lib")}", "-e", program)).to ours
      # As in what Bundler runs, whose own -r it puts first.
      expect(seen(*rperf, "record", "-o", "p.pb.gz", "sh", "-c", <<~SH)).to ours
        RUBYOPT="-rbundler/setup $RUBYOPT" exec '#{ruby}' -e "#{program}"
      SH
    end
  end

  it "isn't seen in this one's own version, which a program may ask for first" do
    program = "puts Rperf::VERSION, Rperf.respond_to?(:start)"
    outcome = run(ruby, "-I", File.join(Commands::ROOT, "lib"), "-rrperf/version", "-rrperf", "-e", program)
    expect([outcome.stdout, outcome.stderr]).to eq(["#{Rperf::VERSION}\ntrue\n", ""])
  end

  it "has this one's name, as long as that isn't another, and the gem says so" do
    original = original_gem
    own = own_gem
    expect(install_gem(own).stdout).to match(/^This rperf is not the one of RubyGems.*: keep one\.$/)
    install_gem(original)
    expect(version_in("-rrperf")).to eq([["0.9.0"], []])
    expect(seen(ruby, "-e", "gem 'rperf', '< 0.9'; require 'rperf'; puts Rperf::VERSION"))
      .to eq([[Rperf::VERSION], []])
    expect(install_gem(own_gem("rperf-x")).stdout).not_to include("This rperf")
  end
end
