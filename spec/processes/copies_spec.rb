# frozen_string_literal: true

require "fileutils"

# Two gems, or a gem and a checkout, may both be in a program's way.
RSpec.describe "A second copy of rperf in a program", vm: true do
  entries = %w[rack middleware sidekiq active_job viewer pprof_endpoint]

  # A copy of this one, or of another version; its directory.
  def copy(version: nil, name: "copy")
    FileUtils.mkdir(path_to(name))
    FileUtils.cp_r(File.join(Commands::ROOT, "lib"), path_to(name))
    write_file("#{name}/lib/rperf/version.rb", "module Rperf; VERSION = #{version.inspect}; end") if version
    path_to("#{name}/lib")
  end

  def program(second, *required)
    write_file("program.rb", <<~RUBY)
      def work = (i = 0; i += 1 while i < 10_000_000)
      $LOAD_PATH.unshift("#{second}")
      #{required.map { |it| "require #{it.inspect}" }.join("\n")}
      work
      p Rperf::VERSION, Rperf.running?
      puts $LOADED_FEATURES.grep(%r{^#{second}/}).map { File.basename(it) }.join(" ")
    RUBY
  end

  def record(program) = rperf("record", "-o", "p.pb.gz", ruby, "-w", program)

  it "isn't loaded, and the program's profile is whole" do
    second = copy
    outcome = record(program(second, "#{second}/rperf", *entries.map { |it| "rperf/#{it}" }))
    loaded = [*entries, "rperf"].map { |it| "#{it}.rb" }
    expect(outcome.stdout.lines(chomp: true).first(2)).to eq([Rperf::VERSION.inspect, "true"])
    expect(outcome.stdout.lines.last.split).to match_array(loaded)
    expect(outcome.stderr.lines).to contain_exactly(/\Arperf: wrote p\.pb\.gz/)
    expect(read_profile(path_to("p.pb.gz"))[:samples].flat_map(&:first)).to include([/./, "Object#work"])
  end

  it "is told if it is another version" do
    second = copy(version: "0.0.1")
    outcome = record(program(second, "rperf/rack"))
    expect(outcome.stdout).to eq("#{Rperf::VERSION.inspect}\ntrue\nrack.rb\n")
    told = %r{\Arperf: #{Regexp.escape(second)}/rperf/rack\.rb isn't loaded, because the program has another version}
    expect(outcome.stderr.lines).to match([told, /\Arperf: wrote p\.pb\.gz/])
  end

  it "leaves a session alone that the program has begun itself" do
    write_file("program.rb", <<~RUBY)
      require "#{File.join(Commands::ROOT, "lib/rperf")}"
      Rperf.start
      require "#{copy}/rperf"
      p Rperf.running?
      p Rperf.stop.class
    RUBY
    outcome = run(ruby, "-w", "program.rb")
    expect([outcome.stdout, outcome.stderr]).to eq(["true\nRperf::Profile\n", ""])
  end

  it "does no harm where the first one has been removed since, or couldn't be loaded" do
    first, second = %w[first second].map { |name| copy(name:) }
    FileUtils.rm(Dir["#{first}/rperf/rperf.*"])
    write_file("program.rb", <<~RUBY)
      begin
        require "#{first}/rperf"
      rescue LoadError => e
        puts e.message.lines.first
      end
      require "#{second}/rperf"
      puts Rperf.start { 1 }.class
      require "fileutils"
      FileUtils.rm_r("#{second}")
      require "#{File.join(Commands::ROOT, "lib/rperf")}"
      puts Rperf.start { 1 }.class
    RUBY
    outcome = run(ruby, "program.rb")
    expect(outcome.stdout.lines).to match([/there is none for Ruby/, "Rperf::Profile\n", "Rperf::Profile\n"])
    expect(outcome.messages).to be_empty
  end
end
