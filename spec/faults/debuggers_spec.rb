# frozen_string_literal: true

# Programs that others trace: each signal and system call stops them.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  def need(tool)
    skip "there is no #{tool}" unless system(tool, "--version", %i[out err] => File::NULL)
  end

  Faults.kinds(0).each do |kind|
    it "is as without rperf under strace (#{kind})" do
      need("strace")
      expect_same(kind, before: %w[strace -f -qq -o /dev/null], limit: 300)
    end
  end

  def coming_and_going(pid) = ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-p", pid.to_s, "-ex", "detach"]

  # What it says as it leaves.
  def detached(pid)
    system(*coming_and_going(pid), in: File::NULL, %i[out err] => path_to(".debugger"))
    File.read(path_to(".debugger"))[/^\[Inferior 1 \(process #{pid}\) detached\]/]
  end

  # Whether one may be attached to.
  def need_right
    pid = Process.spawn("sleep", "60")
    skip "no right to attach a debugger" unless detached(pid)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  Faults.kinds(2).each do |kind|
    it "is as without rperf when a debugger comes and goes (#{kind})" do
      need("gdb")
      need_right
      # It works until the debugger has gone.
      inside = "Program.work(0.01) until File.exist?('seen')\nFile.delete('seen')"
      expect_same(kind, inside:, limit: 300) do |pid,|
        expect(detached(pid)).not_to be_nil
        write_file("seen", "")
      end
    end
  end
end
