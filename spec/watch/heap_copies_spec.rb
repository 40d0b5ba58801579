# frozen_string_literal: true

# The copy of a program that `rperf heap` makes, where processes are not what they usually are.
RSpec.describe "rperf heap", vm: true, emulated: false, if: Gem::Platform.local.os == "linux" do
  include Ports

  # A program that listens, and has a thousand objects of a class.
  program = <<~RUBY
    Order = Class.new
    ORDERS = Array.new(1000) { Order.new }
    puts Rperf.listen
    sleep
  RUBY

  def heap(pid) = rperf("heap", "--json", "--force", pid.to_s)

  def orders(pid)
    outcome = heap(pid)
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    JSON.parse(outcome.stdout)["classes"].find { |it| it["name"] == "Order" }["objects"]
  end

  def children(pid) = Dir["/proc/#{pid}/task/*/children"].flat_map { |path| File.read(path).split }

  # PR_SET_CHILD_SUBREAPER, and so many copies one after the other.
  it "leaves no child behind in a program that takes the processes whose parents have ended" do
    prctl = RbConfig::CONFIG["host_cpu"] == "aarch64" ? 167 : 157
    listening("$VERBOSE = nil; syscall(#{prctl}, 36, 1, 0, 0, 0)\n#{program}") do |running|
      3.times { expect(orders(running.pid)).to eq(1000) }
      wait_until("the end of the copies", detail: -> { children(running.pid).inspect }) { children(running.pid).empty? }
      expect(File.read("/proc/#{running.pid}/stat").split[2]).to eq("S")
    end
  end

  it "leaves no child behind in the first process of a container" do
    skip(Containers.missing) if Containers.missing
    before = [*Containers::MACHINE, "sh", "-c", 'echo $$ > first; exec "$@"', "sh"]
    listening("File.write('first', Process.pid)\n#{program}", before:) do |running|
      expect(File.read(path_to("first"))).to eq("1")
      first = children(running.pid).fetch(0).to_i
      2.times { expect(orders(first)).to eq(1000) }
      wait_until("the end of the copies", detail: -> { children(first).inspect }) { children(first).empty? }
    end
  end

  describe "of a program with a filter of system calls" do
    def filtered(rules) = [ruby, File.join(Commands::ROOT, "spec/security/filtered.rb"), rules]

    %w[close_range=ENOSYS setsid=EPERM].each do |rule|
      it "works with #{rule}" do
        listening(program, before: filtered(rule)) { |running| expect(orders(running.pid)).to eq(1000) }
      end
    end

    %w[close_range=kill setsid=kill].each do |rule|
      it "refuses in a line with #{rule}, and the program runs on" do
        listening(program, before: filtered(rule)) do |running|
          outcome = heap(running.pid)
          expect([outcome.stdout, outcome.status.exitstatus]).to eq(["", 1])
          expect(outcome.stderr).to match(/\Arperf: .*filter of system calls \(seccomp\).*\n\z/)
          expect(rperf("stacks", running.pid.to_s).status).to be_success
        end
      end
    end

    it "says in a line that the system makes no process, where there can be none" do
      # Older C libraries make threads by the same call.
      threads = run(*filtered("clone=EPERM"), ruby, "-e", "Thread.new { puts 'runs' }.join").stdout
      skip("no thread can be made with this filter") unless threads == "runs\n"
      listening(program, before: filtered("clone=EPERM")) do |running|
        outcome = heap(running.pid)
        expect([outcome.stdout, outcome.status.exitstatus, outcome.stderr.lines.size]).to eq(["", 1, 1])
        expect(rperf("stacks", running.pid.to_s).status).to be_success
      end
    end
  end
end
