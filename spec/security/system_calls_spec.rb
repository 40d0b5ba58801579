# frozen_string_literal: true

# docs/security.md lists the system calls that rperf makes in a program, for filters: none is missing there.
RSpec.describe "The system calls of rperf", vm: true, emulated: false, if: Gem::Platform.local.os == "linux" do
  before { skip "there is no strace" unless system("strace -V", %i[out err] => File::NULL) }

  program = <<~RUBY
    queue = Queue.new
    thread = Thread.new { sleep 0.05; 100.times { queue.pop } }
    600_000.times { |i| queue << i if (i % 6000).zero? }
    thread.join
    GC.start
    File.write("text", "x")
    File.read("text")
    sleep 0.1
  RUBY

  # @return [Array<String>] the names of the system calls
  def calls_of(*command, **env)
    path = path_to("trace")
    outcome = run("strace", "-f", "-qq", "-o", path, ruby, *command, env: env.transform_keys(&:to_s))
    expect(outcome.status).to be_success, outcome.stderr
    File.readlines(path).filter_map { |line| line[/\A\d+ +(\w+)\(/, 1] }.uniq
  end

  listed = File.read(File.join(Commands::ROOT, "docs/security.md"))[/^## System calls\n(.*?)^## /m, 1]
               .lines.grep(/^\| [a-z]/).flat_map { |line| line.split("|").last(2).first.scan(/`(\w+)`/).flatten }

  loaded = ["-I#{Commands::ROOT}/lib", "-rrperf"]
  {
    "in a session of its own" => [{}, [*loaded, "-e", "Rperf.start(mode: :wall, output: 'p.pb.gz') {\n#{program}}"]],
    "in one whose file is there already" => [{}, [*loaded, "-e", <<~RUBY]],
      Rperf.start(mode: :wall, output: "old.pb.gz") { 1 }
      Rperf.start(mode: :wall, output: "old.pb.gz") {\n#{program}}
    RUBY
    "where it is profiled as a whole" => [{ RPERF_ENABLED: "1" }, [*loaded, "-e", program]],
    "with children" => [{}, [*loaded, "-e", <<~RUBY]],
      Rperf.start(inherit: :fork, output: "p.pb.gz") do
        Process.wait(fork { 1 })
        exec("/no/such/program") rescue SystemCallError
        #{program}
      end
    RUBY
    "with a port" => [{ RPERF_LISTEN: "1" }, [*loaded, "-e", program]]
  }.each do |what, (env, command)|
    it "are listed, #{what}" do
      alone = calls_of("-e", program)
      expect(calls_of(*command, **env) - alone - listed).to eq([])
    end
  end
end
