# frozen_string_literal: true

require "fileutils"
require "json"
require "zlib"

# Code of the gem that few programs need is read with the gem, and compiled at its first use.
RSpec.describe "Code that is compiled later", vm: true do
  # The gem's Ruby files in a directory of their own, which can be removed.
  def copy
    FileUtils.mkdir(path_to("gem"))
    FileUtils.cp_r(File.join(Commands::ROOT, "lib"), path_to("gem"))
    path_to("gem/lib")
  end

  it "is there when the gem's files are gone" do
    write_file("program.rb", <<~RUBY)
      require "fileutils"
      require "json"
      require "net/http"
      require "#{copy}/rperf"
      FileUtils.rm_r("#{path_to("gem")}")
      class Work
        def run = (i = 0; i += 1 while i < 3_000_000)
      end
      $kept = Fiber.new { Fiber.yield }.tap(&:resume)
      Rperf.start(measure: :ops, only: "Work#run")
      3.times { Work.new.run }
      installed = Net::HTTP.instance_method(:request).source_location.first
      profile = Rperf.stop
      calls = profile.method_rows.find { |row| row[:name] == "Work#run" }&.fetch(:calls)
      Rperf.save("saved.json", profile)
      fibers = Rperf.module_eval("Helper").fiber_stacks.size
      puts [installed, calls, profile.top(by: :class).map { |row| row[:name] }, fibers].to_json
    RUBY
    outcome = run(ruby, "-w", "program.rb")
    expect(outcome.stderr).to eq("")
    installed, calls, classes, fibers = JSON.parse(outcome.stdout)
    expect([installed, calls, classes]).to match([%r{rperf/ops/net_http\.rb\z}, 3, include("Work")])
    expect(fibers).to be > 0
    expect(JSON.parse(File.read(path_to("saved.json")))).to include("top")
  end

  it "is told of in a line where it can't be read, and the program runs" do
    FileUtils.rm(File.join(copy, "rperf/ops/tilt.rb"))
    enabled = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => path_to("p.pb.gz") }
    outcomes = [enabled, {}].map { |env| run(ruby, "-I#{path_to("gem/lib")}", "-rrperf", "-e", "puts 1", env:) }
    expect(outcomes.map(&:stdout)).to eq(["1\n", ""])
    expect(outcomes.first.stderr).to match(/\Arperf: .*ops.tilt\.rb.*; running without profiling\n\z/)
    expect(outcomes.last.stderr).to match(%r{cannot load such file -- .*/ops/tilt\.rb \(LoadError\)})
  end

  it "isn't compiled in the time of a session, and makes no objects there" do
    write_file("program.rb", <<~RUBY)
      require "#{Commands::ROOT}/lib/rperf"
      Rperf.start(measure: %i[alloc ops], only: "Object#work")
      def work = Array.new(1000) { Object.new }
      work
      2.times { Rperf.snapshot }
      Rperf.stop.save("p.pb.gz")
    RUBY
    expect(run(ruby, "-w", "program.rb").stderr).to eq("")
    names = PprofMessage.new(Zlib.gunzip(File.binread(path_to("p.pb.gz")))).function_names
    expect(names).to include("Object#work")
    expect(names.grep(/Deferred|InstructionSequence|<module:/)).to eq([])
  end

  # What the files of `contents` print that are loaded together as `program` says.
  def loaded(contents, program)
    contents.each { |name, content| write_file("#{name}.rb", content) }
    write_file("program.rb", <<~RUBY)
      require "#{Commands::ROOT}/lib/rperf"
      CODE = Rperf.module_eval("Deferred").new(#{path_to(".").inspect}, #{contents.keys.map(&:inspect).join(", ")})
      #{program}
    RUBY
    outcome = run(ruby, "-w", "program.rb")
    expect(outcome.stderr).to eq("")
    outcome.stdout
  end

  it "runs once, in its order, for all threads that need it" do
    contents = { "first" => "100.times { Thread.pass }\nputs :first\nA = 1",
                 "second" => "puts :second, __FILE__\nB = A" }
    told = loaded(contents, "10.times.map { Thread.new { CODE.load; raise unless B } }.each(&:join)")
    expect(told).to eq("first\nsecond\n#{path_to("./second.rb")}\n")
  end

  it "can't be waited for by a handler of a signal that has come as it runs" do
    contents = { "first" => "Process.kill(:USR1, $$)\nsleep 0.01 until $told\nputs :first" }
    told = loaded(contents, <<~RUBY)
      trap(:USR1) { CODE.load rescue $told = $!.message }
      CODE.load
      puts $told
    RUBY
    expect(told).to eq("first\nrperf is being loaded here just now\n")
  end

  it "runs in a child that was forked as another thread ran it" do
    contents = { "first" => "$ran += 1\n$runs << 1\nsleep if $hangs", "second" => "puts $ran" }
    told = loaded(contents, <<~RUBY)
      $ran = 0
      $runs = Queue.new
      $hangs = true
      Thread.new { CODE.load }
      $runs.pop
      $hangs = false
      Process.wait(fork { CODE.load })
      exit!($?.success? ? 0 : 1)
    RUBY
    expect(told).to eq("2\n")
  end
end
