# frozen_string_literal: true

require_relative "../support/object_graphs"

# Programs that hold known amounts by the variables of threads and fibers, and by instance variables of whatever has
# some: each is told by its name, and no contents and no keys are.
RSpec.describe "names of rperf heap", vm: true, emulated: false, if: Gem::Platform.local.os == "linux" do
  include Ports

  mb = 1 << 20

  # Asks a program that has done `code` and waits; yields its PID and its socket.
  def holding(code)
    program = <<~RUBY
      def text(size) = "x" * (size * #{1 << 20})
      # A thread that has done a block, and waits.
      def waiting(name)
        Thread.new do
          Thread.current.name = name
          yield
          sleep
        end.tap { |it| sleep 0.01 until it.stop? }
      end
      #{code}
      GC.start
      puts Rperf.listen
      sleep
    RUBY
    listening(program) { |it| yield it.pid, it.lines.last }
  end

  def answer_of(*arguments)
    outcome = rperf("heap", "--json", "--force", *arguments.map(&:to_s))
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    JSON.parse(outcome.stdout).tap { |it| expect(it["whole"]).to be(true) }
  end

  # { name of a holder => megabytes } of those that hold one or more.
  def holders(answer)
    large = answer["holders"].select { |it| it["retained_bytes"] >= 1 << 20 }
    large.to_h { |it| [it["name"], it["retained_bytes"] >> 20] }
  end

  # The last two steps of each path to a String of a megabyte.
  def steps(pid)
    rows = answer_of(pid, "--class", "String")["paths"].select { |row| row["retained_bytes"] >= 1 << 20 }
    rows.map { |row| [row["holder"], *row["steps"].last(2).flatten] }
  end

  it "tells which variable of a thread or fiber holds something" do
    holding(<<~RUBY) do |pid, _|
      THREAD = waiting("worker") do
        thread = Thread.current
        thread[:local] = text(1)
        thread.thread_variable_set(:page, text(2))
        thread.thread_variable_set("made_\#{thread.name}", text(3))
        Fiber[:request] = text(4)
        thread.instance_variable_set(:@pool, text(5))
      end
    RUBY
      expect(holders(answer_of(pid))).to include(
        'Thread "worker"[:local]' => 1, 'variable :page of Thread "worker"' => 2,
        'variable :made_worker of Thread "worker"' => 3, "Fiber[:request]" => 4,
        'Thread "worker" @pool' => 5
      )
    end
  end

  it "tells it of fibers that wait, and of the one with which a thread has begun" do
    holding(<<~RUBY) do |pid, _|
      THREAD = waiting("outer") do
        Thread.current[:begun] = text(1)
        Fiber[:begun] = text(2)
        Fiber.new(storage: nil) do
          Thread.current[:present] = text(3)
          Fiber[:present] = text(4)
          sleep
        end.resume
      end
      FIBER = Fiber.new(storage: { tenant: text(5) }) do
        Thread.current[:waits] = text(6)
        Thread.current["made_\#{FIBER.class}"] = text(7)
        FIBER.instance_variable_set(:@own, text(8))
        Fiber.yield
      end
      FIBER.resume
      OTHERS = [Fiber.new(storage: { unused: text(9) }) {}, Fiber.allocate]
    RUBY
      # The fiber may be on a thread's stack, too.
      found = holders(answer_of(pid))
      expect(found).to include(
        '[:begun] of a Fiber of Thread "outer"' => 1, "Fiber[:begun]" => 2,
        'Thread "outer"[:present]' => 3, "Fiber[:present]" => 4,
        "Fiber[:tenant]" => 5, "[:waits] of FIBER" => 6, "[:made_Fiber] of FIBER" => 7,
        "FIBER @own" => 8, "Fiber[:unused]" => 9
      )
    end
  end

  it "calls singleton classes after their objects" do
    holding(<<~RUBY) do |pid, _|
      CART = Object.new
      CART.singleton_class.instance_variable_set(:@pool, text(1))
      PAIR = [Object.new, text(2)]
      PAIR.first.singleton_class.instance_variable_set(:@pool, text(3))
      class Api
        singleton_class.instance_variable_set(:@pool, text(4))
      end
    RUBY
      expect(holders(answer_of(pid))).to include(
        "singleton class of CART @pool" => 1, "singleton class of an instance of Object @pool" => 3,
        "singleton class of Api @pool" => 4
      )
    end
  end

  it "has one name for what fibers have inherited, however many there are" do
    holding(<<~RUBY) do |pid, _|
      Fiber[:tenant] = text(2)
      Fiber[:request] = text(3)
      THREADS = Array.new(9) { waiting("worker") {} }
      FIBERS = Array.new(9) { Fiber.new { Fiber.yield }.tap(&:resume) }
    RUBY
      first = holders(answer_of(pid))
      expect(first).to include("Fiber[:tenant]" => 2, "Fiber[:request]" => 3)
      expect(first.keys.grep(/Fiber\[:/).size).to eq(2)
      # A thread that answers has them, too.
      rperf("stacks", pid.to_s)
      expect(holders(answer_of(pid))).to eq(first)
    end
  end

  it "tells of many variables that have made names as of one Hash" do
    holding(<<~RUBY) do |pid, _|
      THREAD = waiting("worker") do
        150.times { |i| Thread.current.thread_variable_set("made_\#{i}", "x" * #{mb / 50}) }
        150.times { |i| Fiber["made_\#{i}".to_sym] = "x" * #{mb / 50} }
      end
    RUBY
      answer = answer_of(pid)
      ["variables", "fiber storage"].each do |name|
        row = answer["holders"].find { |it| it["name"] == "#{name} of Thread \"worker\"" }
        expect(row["retained_bytes"]).to be_within(0.02 * 3 * mb).of(3 * mb)
        expect(row["class"]).to eq("Hash")
        # A word that is left on a stack may hold the last one, too.
        path = row["path"].map { |step| step.values_at("class", "name", "objects") }
        expect(path).to match([["String", "", be_between(147, 150)]])
      end
    end
  end

  it "names the instance variables of whatever has some" do
    classes = { "Table" => "Hash", "List" => "Array", "Page" => "String", "Lock" => "Mutex", "Line" => "Queue",
                "Error" => "StandardError", "Pattern" => "Regexp", "Code" => "Proc", "Place" => "Dir",
                "Many" => "Hash" }
    arguments = { "Pattern" => '("a")', "Code" => "{}", "Place" => '(".")' }
    made = classes.map do |name, above|
      "#{name} = Class.new(#{above})\n#{name.upcase} = #{name}.new#{arguments[name]}\n" \
        "#{name.upcase}.instance_variable_set(:@text, text(1))\n"
    end
    holding(<<~RUBY) do |pid, _|
      #{made.join}
      500.times { |i| Many.new.instance_variable_set("@odd_\#{i}", i) }
      100.times { |i| MANY.instance_variable_set("@more_\#{i}", i) }
      READS, WRITES = IO.pipe
      READS.instance_variable_set(:@text, text(1))
    RUBY
      expected = classes.keys.map { |name| [name.upcase, name, "", "String", "@text"] }
      expect(steps(pid)).to match_array(expected << ["READS", "IO", "", "String", "@text"])
    end
  end

  it "sends no keys but the names of variables of threads and fibers, and no contents" do
    holding(<<~'RUBY') do |_, socket|
      class Table < Hash; end
      TABLE = Table.new
      TABLE[:bananarama] = TABLE["bananarama"] = { bananarama: { "bananarama" => :bananarama } }
      TABLE.instance_variable_set(:@text, TABLE.keys)
      THREAD = waiting("worker") do
        Thread.current.thread_variable_set(:page, { bananarama: "bananarama" })
        Fiber[:request] = [:bananarama, "bananarama", { bananarama: 1 }]
      end
    RUBY
      stream, = ObjectGraphs.ask(socket, force: true)
      sent = stream.read.b
      expect(sent).to include("@text", "variable :page", "Fiber[:request]")
      expect(sent).not_to include("bananarama")
    end
  end
end
