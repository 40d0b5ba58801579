# frozen_string_literal: true

require "fileutils"

# Two gems, or a gem and a checkout, may both be in a program's way.
RSpec.describe "A second copy of rperf in a program", vm: true do
  # A copy of this one, or of another version.
  def copy(version: nil)
    FileUtils.cp_r(File.join(Commands::ROOT, "lib"), directory)
    write_file("lib/rperf/version.rb", "module Rperf; VERSION = #{version.inspect}; end") if version
    path_to("lib/rperf")
  end

  def program(second)
    write_file("program.rb", <<~RUBY)
      def work = (i = 0; i += 1 while i < 1_000_000)
      require "#{second}"
      work
      p Rperf::VERSION, Rperf.running?
    RUBY
  end

  it "isn't loaded, and the program's profile is whole" do
    outcome = rperf("record", "-o", "p.pb.gz", ruby, "-w", program(copy))
    expect([outcome.stdout, outcome.stderr.lines])
      .to match(["#{Rperf::VERSION.inspect}\ntrue\n", [/\Arperf: wrote p\.pb\.gz/]])
    expect(read_profile(path_to("p.pb.gz"))[:samples].flat_map(&:first)).to include([/./, "Object#work"])
  end

  it "is told if it is another version" do
    outcome = rperf("record", "-o", "p.pb.gz", ruby, "-w", program(copy(version: "0.0.1")))
    expect([outcome.stdout, outcome.stderr.lines])
      .to match(["#{Rperf::VERSION.inspect}\ntrue\n",
                 [%r{\Arperf: #{Regexp.escape(directory)}/lib/rperf\.rb isn't loaded, because the program has another},
                  /\Arperf: wrote p\.pb\.gz/]])
  end

  it "leaves a session alone that the program has begun itself" do
    write_file("program.rb", <<~RUBY)
      require "#{File.join(Commands::ROOT, "lib/rperf")}"
      Rperf.start
      require "#{copy}"
      p Rperf.running?
      p Rperf.stop.class
    RUBY
    outcome = run(ruby, "-w", "program.rb")
    expect([outcome.stdout, outcome.stderr]).to eq(["true\nRperf::Profile\n", ""])
  end
end
