# frozen_string_literal: true

require "json"
require "rperf"
require "tmpdir"
require_relative "../support/allocated"
require_relative "../support/clock"
require_relative "../support/gap"
require_relative "../support/interleave"
require_relative "../support/native"
require_relative "../support/proc_status"

# A program that is asked by its port: child.rb busy=N blocked=N:DEPTH session=HERTZ nodes=N objects=N makes such
# threads, such a session, a session with so many nodes, or so many objects. It prints its port's path, if it has one,
# when all is there; then takes commands, one a line, and answers each with JSON. It ends when its input does.
module Program
  module_function

  def busy(threads)
    Integer(threads).times { Thread.new { loop { 1000.times(&:to_s) } } }
  end

  def blocked(given)
    threads, depth = given.split(":").map { |number| Integer(number) }
    made = Array.new(threads) { Thread.new { descend(depth - 1) } }
    Thread.pass until made.all?(&:stop?)
  end

  def descend(depth) = depth.zero? ? sleep : descend(depth - 1)

  def session(hertz) = Rperf.start(mode: :wall, frequency: Integer(hertz), max_overhead: 100)

  # Rows of a cache, with a String and an Array each.
  def objects(count)
    @rows = Array.new(Integer(count) / 3) { |number| Row.new("row #{number}", [number]) }
    3.times { GC.start }
  end

  Row = Struct.new(:name, :numbers)

  # A session whose program has come through so many ways: each node of a tree is a method's call at a line.
  def nodes(count)
    session(10_000)
    Tree.define
    Tree.walk(Integer(count))
  end
end

# What has many call stacks.
module Tree
  METHODS = 400
  DEPTH = 20
  # A tick takes each with it.
  NAP = 0.0002

  module_function

  def define
    text = Array.new(METHODS) do |number|
      "def method_#{number}(way, at) = (name = way[at]) ? __send__(name, way, at + 1) : nap"
    end
    module_eval(text.join("\n"), "tree.rb", 1)
    module_function(*Array.new(METHODS) { |number| :"method_#{number}" })
  end

  def nap = sleep(NAP)

  # Each stack is seen blocked, and adds a few nodes to the tree: those below where it turns off.
  def walk(nodes)
    left = nodes / (DEPTH / 2)
    walkers = Array.new(50) do |seed|
      Thread.new do
        random = Random.new(seed)
        way = Array.new(DEPTH) { name(random) }
        while (left -= 1) >= 0
          way = way.first(random.rand(DEPTH)).then { |kept| kept + Array.new(DEPTH - kept.size) { name(random) } }
          method_0(way, 0)
        end
      end
    end
    walkers.each(&:join)
  end

  def name(random) = :"method_#{random.rand(METHODS)}"
end

# What is done when a line asks for it. Each returns a Hash.
module Commands
  # It can be closed while the program goes on, which the API doesn't offer.
  PORT = Rperf.const_get(:Port)

  module_function

  # A workload's run.
  def run(workload, scale)
    require_relative "../workloads/#{workload}"
    cpu = Bench::Clock.process_cpu
    began = Bench::Clock.wall
    WORKLOAD.call(Float(scale))
    { wall_ns: Bench::Clock.wall - began, cpu_ns: Bench::Clock.process_cpu - cpu }
  end

  # Runs by turns: one while the program has a port, and one while it has none.
  def with_port_and_without(workload, scale, pairs)
    20.times { run(workload, scale) }
    runs = Dir.mktmpdir do |directory|
      Bench::Interleave.call([true, false], runs: Integer(pairs)) do |has_port|
        PORT.begin(directory) if has_port
        run(workload, scale)[:cpu_ns]
      ensure
        PORT.close if has_port
      end
    end
    { with: runs[true], without: runs[false] }
  end

  # How long another thread couldn't get the GVL at most.
  def gap(seconds) = { gap_ns: Bench::Gap.longest { sleep(Float(seconds)) } }

  # The same until a line comes.
  def gap_until_told = { gap_ns: Bench::Gap.longest { $stdin.gets } }

  # The same while the program forks, in the middle of that time.
  def gap_of_fork(seconds)
    half = Float(seconds) / 2
    gap = Bench::Gap.longest do
      sleep(half)
      pid = fork { exit!(true) }
      sleep(half)
      Process.wait(pid)
    end
    { gap_ns: gap }
  end

  # A thread that only reads the clock: how long it stood still at most, in each tenth of a second.
  def stops(tenths)
    longest = Array.new(Integer(tenths)) do
      over = Bench::Clock.wall + 100_000_000
      longest = 0
      last = Bench::Clock.wall
      while last < over
        now = Bench::Clock.wall
        longest = now - last if now - last > longest
        last = now
      end
      longest
    end
    { longest: }
  end

  # How many turns of a loop a thread comes through in that time.
  def turns(seconds)
    over = Bench::Clock.wall + (Float(seconds) * 1e9)
    turns = 0
    while Bench::Clock.wall < over
      100.times(&:to_s)
      turns += 1
    end
    { turns: }
  end

  # A C method that keeps the GVL.
  def keep(seconds)
    Bench::Native.load
    BenchNative.c_sleep_gvl((Float(seconds) * 1e6).to_i)
    {}
  end

  def listen
    began = Bench::Clock.wall
    path = Rperf.listen
    { ns: Bench::Clock.wall - began, path: }
  end

  # Forks: until the parent goes on, and until a child that does nothing has ended.
  def forks(times)
    took = Array.new(Integer(times)) do
      began = Bench::Clock.wall
      pid = fork { exit!(0) }
      forked = Bench::Clock.wall
      Process.wait(pid)
      [forked - began, Bench::Clock.wall - began]
    end
    { took: }
  end

  def backtraces
    began = Bench::Clock.wall
    Thread.list.each(&:backtrace)
    { ns: Bench::Clock.wall - began }
  end

  def state
    GC.start
    status = File.read("/proc/self/status")
    { own_kb: Integer(status[/^RssAnon:\s*(\d+)/, 1]), rss_kb: Bench::ProcStatus.rss_kb,
      allocated_kb: Bench::Allocated.kb, threads: Thread.list.size, descriptors: Dir.children("/proc/self/fd").size }
  end
end

setup = ARGV.to_h { |word| word.split("=", 2) }
setup.each { |name, value| Program.public_send(name, value) }
answers = $stdout.dup
answers.sync = true
# Workloads may print.
[$stdout, $stderr].each { |output| output.reopen(File::NULL) }
answers.puts(ENV["RPERF_LISTEN"] ? Rperf.listen : "")
$stdin.each_line { |line| answers.puts(JSON.generate(Commands.public_send(*line.chomp.split("\t")))) }
exit!(true)
