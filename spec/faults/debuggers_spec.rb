# frozen_string_literal: true

# Programs that others trace: each signal and system call stops them.
RSpec.describe "A profiled program", Faults::MARKS do
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

  Faults.kinds(2).each do |kind|
    it "is as without rperf when a debugger comes and goes (#{kind})" do
      need("gdb")
      expect_same(kind, limit: 300) do |pid,|
        command = ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-p", pid.to_s, "-ex", "detach"]
        system(*command, in: File::NULL, %i[out err] => path_to(".debugger"))
        expect(File.read(path_to(".debugger"))).to include("Inferior 1 (process #{pid}) detached")
      end
    end
  end
end
