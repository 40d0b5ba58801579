# frozen_string_literal: true

# Ruby 4.0 has boxes (Ruby::Box) if RUBY_BOX=1 says so: each has changes of its own to classes that all have.
RSpec.describe "A program with boxes", vm: true, if: defined?(Ruby::Box) do
  boxes = { "RUBY_BOX" => "1" }

  def record(program, env)
    rperf("record", "-o", "p.pb.gz", "--", ruby, "-W0", write_file("program.rb", program), env:)
  end

  # Ruby 4.0 loses methods of modules if one is prepended to them.
  it "gets the methods that it adds to modules and classes, in each box" do
    write_file("boxed.rb", <<~RUBY)
      module Kernel; def in_box = 6; end
      module Process; def self.in_box = 7; end
      SEEN = [nil.in_box, Process.in_box, Object.respond_to?(:early, true)]
    RUBY
    outcome = record(<<~RUBY, boxes)
      module Kernel; def early = 1; end
      module Kernel; def self.late = 2; end
      module Process; def self.early = 3; end
      class << Process; def late = 4; end
      class Object; def late = 5; end
      require "pp"
      p nil.early, Kernel.late, Process.early, Process.late, Object.new.late, [nil].pretty_inspect
      box = Ruby::Box.new
      box.require("#{path_to("boxed.rb")}")
      p box::SEEN, Ruby::Box.current.main?
    RUBY
    expect(outcome.stdout.lines(chomp: true)).to eq(%w[1 2 3 4 5] + ['"[nil]\n"', "[6, 7, false]", "true"])
    expect(outcome.messages).to match([/\Arperf: wrote p\.pb\.gz/])
  end

  it "is profiled whichever way its processes end" do
    outcome = record(<<~'RUBY', boxes)
      def work = (i = 0; i += 1 while i < 10_000_000)
      def with_self = work
      def with_process = work
      def with_kernel = work
      def before_exec = work
      fork { with_self; exit! }
      fork { with_process; Process.exit!(true) }
      fork { with_kernel; Kernel.exit! }
      Process.waitall
      before_exec
      exec(RbConfig.ruby, "-W0", "-e", "def after_exec = (i = 0; i += 1 while i < 10_000_000)\nafter_exec\nputs 1")
    RUBY
    expect([outcome.stdout, outcome.status]).to match(["1\n", be_success])
    expect(outcome.messages).to match([/\Arperf: wrote p\.pb\.gz .* of 4 processes/])
    data = read_profile(path_to("p.pb.gz"))
    names = %w[with_self with_process with_kernel before_exec after_exec]
    expect(names.map { |name| weight_of(data, "Object##{name}") }).to all(be_positive)
  end

  it "runs on where another box forks, executes programs and ends, of which that box's processes aren't profiled" do
    write_file("boxed.rb", <<~RUBY)
      def work = (i = 0; i += 1 while i < 10_000_000)
      fork { work; exit!(true) }
      fork { exec("true") }
      fork { work }
      SEEN = Process.waitall.map { |_, status| status.success? }
    RUBY
    outcome = record(<<~RUBY, boxes)
      def of_main = (i = 0; i += 1 while i < 10_000_000)
      box = Ruby::Box.new
      box.require("#{path_to("boxed.rb")}")
      of_main
      p box::SEEN
    RUBY
    expect([outcome.stdout, outcome.status]).to match(["[true, true, true]\n", be_success])
    expect(outcome.messages).to match([/\Arperf: wrote p\.pb\.gz \([\d,]+ samples, [\d.]+ s\)/])
    expect(weight_of(read_profile(path_to("p.pb.gz")), "Object#of_main")).to be_positive
  end
end
