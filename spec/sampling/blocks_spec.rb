# frozen_string_literal: true

require "json"
require_relative "../support/compilers"

# Blocks are frames of their own, with the names that Ruby's own backtraces have.
RSpec.describe "blocks", vm: true do
  # Stacks of many shapes, all of which lead to `spin`. It notes them as Ruby tells them.
  shapes = <<~'RUBY'
    require "rperf"
    require "json"
    require "set"

    TOLD = Set.new
    SECONDS = Float(ENV.fetch("SECONDS", "0.03"))

    def told
      caller_locations(2).map(&:label)
    end

    def spin
      TOLD << told
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    end

    def hand_on = yield

    class Tree
      def count = [1].each { spin }
      def nested = [1].each { |x| x.times { [x].map { spin } } }
      def self.make = [1].each { spin }
      def each_with_index_of_c = [1].each_with_index { |_, index| spin if index.zero? }
      def in_rescue
        [1].each do
          raise "x"
        rescue RuntimeError
          [1].each { spin }
        end
      end
      def in_ensure
        [1].each do
          hand_on { nil }
        ensure
          spin
        end
      end
      def lambda_after_its_method = lambda { [1].each { spin } }
      def in_eval = eval("[1].each { spin }", binding, __FILE__, 500)
      def in_another_self = Object.new.instance_eval { [1].each { spin } }
      def enumerated = Enumerator.new { |lines| [1].each { lines << spin } }.next
      def in_fiber = Fiber.new { spin }.resume
      def for_loop
        for _ in [1] do spin end
      end
      define_method(:defined_by_block) { [1].each { spin } }
      def deep
        hand_on { hand_on { hand_on { hand_on { hand_on { hand_on { hand_on { spin } } } } } } }
      end
      class << self
        def of_singleton = 1.times { spin }
      end
      def itself_again(turns) = turns.zero? ? spin : [1].each { itself_again(turns - 1) }
    end
    module Mixed
      def mixed = [1].each { spin }
    end
    class Tree
      include Mixed
    end

    def all
      tree = Tree.new
      %i[count nested each_with_index_of_c in_rescue in_ensure in_eval in_another_self enumerated in_fiber for_loop
         defined_by_block deep mixed].each { |name| tree.public_send(name) }
      Tree.make
      Tree.of_singleton
      tree.lambda_after_its_method.call
      tree.itself_again(3)
    end
  RUBY

  # The stacks that end in `spin`, from the leaf on, without what isn't the program's or has no label of its own.
  def stacks(file)
    lines = rperf("report", "--format", "collapsed", "--idle", file).stdout.lines
    found = lines.filter_map do |line|
      frames = line[/\A(.*) \d+\Z/, 1].split(";")
      leaf = frames.index("Object#spin") or next
      own(frames.first(leaf).reverse)
    end
    found.uniq
  end

  # The frames of the program. A rescue clause has one of its own, which Ruby's backtraces leave out.
  def own(frames) = frames.grep(@own).chunk_while { |one, other| one == other }.map(&:first)

  before do
    # Methods of Ruby's own have files of their own: they aren't among the labels.
    @own = /Tree|Mixed|Object#(all|hand_on)|block .*in (<main>|<class)/
  end

  # The stacks of the profile are those that Ruby has told.
  def expect_told(file, stdout)
    told = JSON.parse(stdout).map { |labels| own(labels) }
    expect(told.size).to be >= 17
    found = stacks(file)
    expect(told - found).to eq([])
    expect(found.flatten.uniq - told.flatten).to eq([])
  end

  session = "Rperf.start(mode: :wall, frequency: 2000, output: ARGV[0], **OPTIONS) { 3.times { all } }\n"
  finish = "puts JSON.generate(TOLD.to_a)\n"

  def run_shapes(program, *flags, env: {})
    outcome = run(ruby, *flags, "-I#{Commands::ROOT}/lib", write_file("shapes.rb", program), "x.pb.gz", env:)
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    outcome.stdout
  end

  { "at ticks" => "{}", "at safepoints" => "{ capture: :safepoint }" }.each do |how, options|
    it "have Ruby's names in samples #{how}" do
      told = run_shapes("#{shapes}OPTIONS = #{options}.freeze\n#{session}#{finish}")
      expect_told("x.pb.gz", told)
    end
  end

  Compilers::FLAGS.each do |compiler, flag|
    it "have Ruby's names in samples of code that #{compiler} has compiled" do
      told = run_shapes("#{shapes}OPTIONS = {}.freeze\n#{session}#{finish}", flag, "#{flag}-call-threshold=1")
      expect_told("x.pb.gz", told)
    end
  end

  it "have Ruby's names in traces" do
    program = "#{shapes}Rperf.trace(output: ARGV[0], warn: false) { all }\n#{finish}"
    expect_told("x.pb.gz", run_shapes(program, env: { "SECONDS" => "0" }))
  end

  it "have them in the stacks of other threads and Ractors, and of allocations" do
    write_file("app.rb", <<~RUBY)
      class Pool
        def wait = [1].each { Thread.stop }
        def self.make = 50_000.times { Object.new }
        def self.spin = [1].each { 3_000_000.times { Math.sqrt(2) } }
      end
      thread = Thread.new { Pool.new.wait }
      Thread.pass until thread.stop?
      Pool.make
      ractor = Ractor.new { Pool.spin }
      ractor.respond_to?(:take) ? ractor.take : ractor.join
      thread.run.join
    RUBY
    rperf("record", "-m", "wall", "-f", "2000", "--measure", "alloc", "-o", "x.pb.gz", ruby, "-W0", "app.rb")
    rows = JSON.parse(rperf("report", "--format", "json", "--idle", "-n", "0", "--sort", "total", "x.pb.gz").stdout)
    names = rows["top"].map { |row| row["name"] }
    expect(names).to include("block in Pool#wait", "block in Pool.spin", "block (2 levels) in Pool.spin")
    objects = rperf("report", "--format", "json", "--value", "alloc_objects", "--sort", "self", "x.pb.gz").stdout
    expect(JSON.parse(objects)["top"].first).to include("name" => "block in Pool.make")
  end

  it "count as seven levels if they are deeper" do
    blocks = 9.times.reduce("spin") { |inner, _| "hand_on { #{inner} }" }
    program = "#{shapes}def deepest = #{blocks}\nRperf.trace(output: ARGV[0], warn: false) { deepest }\n"
    run_shapes(program, env: { "SECONDS" => "0" })
    found = rperf("report", "--format", "collapsed", "x.pb.gz").stdout[/.*Object#spin/].split(";").grep(/deepest/)
    levels = (2..7).map { |level| "block (#{level} levels) in Object#deepest" }
    expected = ["Object#deepest", "block in Object#deepest", *levels, levels.last, levels.last]
    expect(found).to eq(expected)
  end

  it "are in the listing of their method's lines, and are named beside what it calls" do
    write_file("app.rb", <<~RUBY)
      class Feed
        def build
          400.times do |number|
            60.times { |other| format(number * other) }
          end
        end
        def format(number) = number.to_s.rjust(8, "0")
      end
      60.times { Feed.new.build }
    RUBY
    rperf("record", "-o", "x.pb.gz", ruby, "app.rb")
    lines = rperf("report", "--annotate", "Feed#build", "x.pb.gz").stdout
    total = lines[/^Feed#build .*: ([\d,.]+) ms/, 1].delete(",").to_f
    in_block = lines[/^ *[\d.,]+(?: ms)? +([\d.,]+) ms +4 /, 1] || lines[/ ([\d.,]+) ms +4 /, 1]
    expect(in_block.delete(",").to_f).to be_within(total * 0.1).of(total)
    expect(lines.scan(/^Feed#build /).size).to eq(1)
    blocks = rperf("report", "--annotate", "block (2 levels) in Feed#build", "x.pb.gz").stdout
    expect(blocks).to match(/^block \(2 levels\) in Feed#build /)
    callers = rperf("report", "--callers", "Feed#build", "x.pb.gz").stdout
    expect(callers).to match(/^  its blocks\n.*  block in Feed#build .*\n.*  block \(2 levels\) in Feed#build /)
  end
end
