# frozen_string_literal: true

# Programs that can't answer, or not now: each command says why, soon.
RSpec.describe "rperf about a program that", vm: true do
  include Ports

  # Loaded machines start commands slowly; alone on a machine, each line comes within 3 s.
  limit = 40
  commands = { "stacks" => [], "attach" => %w[-d 2 -o x.pb.gz], "top" => %w[--json], "snapshot" => %w[-o y.pb.gz] }
  watching = { "attach" => %w[-d 60 -o x.pb.gz], "top" => %w[--json --interval 0.5] }

  # Works until the file `go` is there, if `works`; then `code` runs.
  def program(code, works: false, before: "", &)
    work = "def work = loop { 100.times { |i| i.to_s }; break if File.exist?('go') }"
    listening("#{before}\n#{work}\nThread.new { sleep }\nputs Rperf.listen\n#{"work" if works}\n#{code}", &)
  end

  # A C call that keeps the GVL.
  def hanging(session: "", **, &)
    skip "no fiddle" unless run(ruby, "-e", "require 'fiddle'").status.success?
    before = <<~RUBY
      require "fiddle"
      ARGUMENTS = [Fiddle::TYPE_INT]
      HANG = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], ARGUMENTS, Fiddle::TYPE_INT, need_gvl: true)
      #{session}
    RUBY
    # A tick just as it begins can end it early.
    program("loop { HANG.call(600) }", before:, **, &)
  end

  define_method(:soon) { |what, &block| wait_until(what, limit:, &block) }

  # Starts the commands at once; `yields` when all of them watch. Returns what each says until that matches what is
  # expected of it, and ends them.
  def said_by(commands, program, expected)
    files = commands.to_h { |name, _| [name, path_to("said-#{name}")] }
    pids = commands.map do |name, options|
      command = rperf_command(name, *options, program.pid.to_s)
      Process.spawn(clean_environment, *command, chdir: directory, out: path_to("out-#{name}"), err: files[name])
    end
    yield if block_given?
    files.each { |name, file| expect_line(name, file, expected.fetch(name)) }
  ensure
    pids&.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  def expect_line(name, file, expected)
    said = -> { File.exist?(file) ? File.read(file) : "" }
    soon("line of #{name}") { said.call.match?(expected) }
  rescue RuntimeError
    raise "rperf #{name} says #{said.call.inspect}, not #{expected.inspect}"
  end

  it "only waits is told by rperf top --once, which ends" do
    program("sleep") do |program|
      outcome = rperf("top", "--once", "--interval", "0.5", program.pid.to_s)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      expect(outcome.stdout).to match(/\A#{program.pid} \S.* runs no Ruby code just now: /)
      expect(outcome.stdout).to include("\nNo Ruby code runs, so there are no rows: 'rperf stacks' ")
      outcome = rperf("top", "--once", "--json", "--interval", "0.5", program.pid.to_s)
      expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr.lines.size]).to eq([1, "", 1])
      expect(outcome.stderr).to end_with(": so there are no rows\n")
    end
  end

  it "only waits is named by rperf top --once beside one that works, and so is one that was stopped" do
    program("sleep") do |waiting|
      program("", works: true) do |working|
        outcome = rperf("top", "--once", "--interval", "0.5", *[waiting, working].map { |it| it.pid.to_s })
        expect(outcome.status.exitstatus).to eq(0)
        silent = /\Arperf: #{waiting.pid} \S.* runs no Ruby code just now: .*: so it has no rows\n\z/
        expect(outcome.stderr).to match(silent)
        expect(outcome.stdout).to include("Object#work")
      end
      # It answers the first question, and is stopped then.
      Process.kill(:STOP, waiting.pid)
      outcome = rperf("top", "--once", "--interval", "0.5", waiting.pid.to_s)
      expect(outcome.stdout + outcome.stderr).to include("was stopped")
      expect(outcome.stdout).not_to include("rperf stacks")
      Process.kill(:CONT, waiting.pid)
    end
  end

  def watched(program)
    soon("clients") { ask(program.lines.first).last["clients"] > 3 }
    soon("session") { ask(program.lines.first).last["session"] }
    soon("table") { File.size?(path_to("out-top")) }
  end

  it "hangs in a C call with the GVL", emulated: false do
    kept = /the VM doesn't answer: a thread keeps the GVL in native code, or the main thread waits/
    waits = /#{quiet}; /
    hanging do |program|
      stacks = /the VM doesn't answer: .*; 'rperf stacks #{program.pid}' shows what its threads do$/
      said_by(commands, program, "stacks" => kept, "attach" => waits, "top" => waits, "snapshot" => stacks)
    end
    %w[cpu wall].each do |mode|
      hanging(session: "Rperf.start(mode: :#{mode})") do |program|
        line = /the VM doesn't answer: thread #{program.pid} has kept the GVL in native code for [2-9]\.\d s \(sleep\)$/
        said_by(commands.slice("stacks"), program, "stacks" => line)
      end
    end
    hanging(works: true) do |program|
      kept = /\d doesn't answer: thread #{program.pid} has kept the GVL in native code for \d+\.\d s \(sleep\)$/
      with_hint = /#{kept.source.delete_suffix("$")} \(Ctrl-C to give up\)$/
      said_by(watching, program, "attach" => with_hint, "top" => kept) do
        watched(program)
        write_file("go", "")
      end
    end
  end

  def quiet = "runs no Ruby code just now: all its threads wait, or one keeps the GVL in native code"

  it "waits for ever" do
    program("Queue.new.pop") do |program|
      outcome = rperf("stacks", program.pid.to_s)
      expect(outcome.stdout).to match(/No thread ran, so the main thread was woken.*#1 "main" tid \d+ +blocked/m)
      expect(outcome.stdout).to match(/^ +Thread::Queue#pop/)
      waits = /#{quiet}; /
      said_by(commands.slice("attach", "top"), program, "attach" => waits, "top" => waits)
    end
    program("Queue.new.pop", before: "Rperf.start(mode: :wall)") do |program|
      woken = /no thread of #{program.pid} ran, so its main thread was woken for a moment/
      said_by(commands.slice("snapshot"), program, "snapshot" => woken)
    end
  end

  it "is stopped" do
    stopped = /was stopped \(SIGSTOP\): nothing can be asked until SIGCONT$/
    program("", works: true, before: "# stops, of #{Process.pid}") do |program|
      said_by(watching, program, "attach" => stopped, "top" => stopped) do
        watched(program)
        Process.kill(:STOP, program.pid)
      end
      said_by(commands, program, commands.transform_values { stopped })
      outcome = rperf("attach", "--match", "stops, of #{Process.pid}\\b", "-d", "0.1")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /\Arperf: #{program.pid} #{stopped}/])
    end
  end

  it "dies" do
    program("", works: true) do |program|
      ended = /the program has ended after [\d.]+ s[;,]/
      said_by(watching, program, "attach" => ended, "top" => /the program #{program.pid} has ended$/) do
        watched(program)
        Process.kill(:KILL, program.pid)
      end
    end
  end
end
