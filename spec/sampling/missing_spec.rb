# frozen_string_literal: true

require "fileutils"
require_relative "../support/pprof_message"

# What a profile says where rperf can't rely on what it knows of the VM's internals.
RSpec.describe "Missing detail", vm: true do
  def missing(name) = PprofMessage.read(path_to(name)).comments.grep(/\Amissing: /)

  work = <<~RUBY
    # Uses so many seconds of CPU time, on a busy machine, too.
    def work(seconds)
      ends = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < ends
    end
  RUBY

  it "has the reason that the process has no descriptors for a session's check",
     if: Gem::Platform.local.os == "linux" do
    samples = told(<<~RUBY)
      #{work}
      limit, most = Process.getrlimit(:NOFILE)
      # Descriptors below it are all in use.
      free = File.open(File::NULL, &:fileno)
      sums = { "with" => limit, "without" => free }.map do |name, descriptors|
        Process.setrlimit(:NOFILE, descriptors, most)
        Rperf.start(capture: :tick)
        Process.setrlimit(:NOFILE, limit, most)
        work(0.2)
        profile = Rperf.stop
        profile.save("\#{name}.pb.gz")
        profile[:samples].sum { |_, weight,| weight }
      end
      puts sums.to_json
    RUBY
    # Nothing else is lost.
    expect(samples).to all(be_between(50_000_000, 2_000_000_000))
    expect(missing("with.pb.gz")).to eq([])
    line = "missing: lines of compiled code, because rperf got no file descriptors to check the internals of " \
           "Ruby #{RUBY_VERSION} with"
    expect(missing("without.pb.gz")).to eq([line])
    # `rperf report` reads it back, and writes it again.
    rperf("report", "-o", "again.pb.gz", "without.pb.gz")
    expect(missing("again.pb.gz")).to eq([line])
    # A comparison says which side lacks it.
    compared = rperf("diff", "--top", "with.pb.gz", "again.pb.gz").stdout
    expect(compared).to include("\nMissing: in the target only, #{line.delete_prefix("missing: ")}\n")
    expect(rperf("diff", "--top", "again.pb.gz", "without.pb.gz").stdout).not_to include("Missing:")
  end

  # In a copy, in which the extension is built for a Ruby that doesn't exist. It takes minutes.
  # Each is a build of its own, for this machine.
  describe "where the extension was built for another Ruby", if: Commands::LONG, emulated: false do
    def simulated(variables, program)
      copy = path_to("copy")
      FileUtils.mkdir(copy)
      system("tar -C '#{Commands::ROOT}' --exclude=./.git --exclude=./target --exclude=./tmp --exclude=./pkg " \
             "--exclude=./viewer/node_modules --exclude=./lib/rperf/rperf.so -cf - . | tar -C '#{copy}' -xf -")
      sources = ENV.fetch("EXTENSION_SOURCES", Commands::ROOT)
      target = ENV.fetch("CARGO_TARGET_DIR", File.join(sources, "target/further"))
      env = { "EXTENSION_SOURCES" => sources, "CARGO_TARGET_DIR" => target, "EXTENSION_PROFILE" => "further",
              "RPERF_RUBY" => ruby, "PATH" => ENV.fetch("PATH") }
      env.merge!(variables.transform_keys { |name| "RPERF_SIMULATED_#{name}" })
      write_file("app.rb", program)
      [["record", "-v"], ["trace", "-v"]].map do |command|
        name = "#{command.first}.pb.gz"
        outcome = run(File.join(copy, "bin/rperf"), *command, "-o", name, ruby, "app.rb", env:, limit: 900)
        expect(outcome.status).to be_success, outcome.stderr
        told = outcome.stderr.lines(chomp: true).grep(/\A\[rperf\] missing: /) { |line| line.delete_prefix("[rperf] ") }
        [told, missing(name), PprofMessage.read(path_to(name)).comments]
      end
    end

    program = <<~RUBY
      #{work}
      Warning[:experimental] = false
      define_method(:defined_by_block) { work(0.1) }
      ractor = Ractor.new { work(0.3) }
      work(0.2)
      defined_by_block
      ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY

    newest = RUBY_VERSION[/\d+\.\d+/]
    [
      [{ "RUBY" => "9.9.0" }, "this rperf doesn't know the internals of Ruby 9.9.0"],
      [{ "RUBY" => "#{newest}.99", "LAYOUT" => "moved" },
       "the internals of Ruby #{newest}.99 aren't as this rperf knows them"]
    ].each do |variables, why|
      it "says that #{why}" do
        recorded, traced = simulated(variables, program)
        told, missing, comments = recorded
        expect(missing).to include("missing: stacks at ticks, because #{why}")
        expect(missing).to all(end_with(", because #{why}"))
        expect(told).to eq(missing)
        expect(comments).to include(/\Acapture: safepoint/)
        expect(comments.grep(/\(Ractors: /)).to eq([])
        told, missing, = traced
        lacking = ["names of methods made by define_method", "names of blocks", "names of threads"]
        expect(missing).to eq(lacking.map { |what| "missing: #{what}, because #{why}" })
        expect(told).to eq(missing)
        # The VM itself has said that it is a block.
        names = rperf("report", "--format", "collapsed", "--idle", "trace.pb.gz").stdout
        expect(names).to include("block in <main>")
        expect(names).not_to include("block in block")
      end
    end
  end
end
