# frozen_string_literal: true

# Linux namespaces stand in for a container: other process numbers, another /tmp, another network.
RSpec.describe "A program in a container", if: RUBY_PLATFORM.include?("linux") do
  include Ports

  flags = %w[--pid --fork --mount --mount-proc --kill-child --propagation private]

  before do
    outcome = run("unshare", *flags, "--net", "mount", "-t", "tmpfs", "none", "/tmp")
    skip "needs the right to make namespaces" unless outcome.status.success?
  rescue Errno::ENOENT
    skip "needs unshare, which was not found"
  end

  # Its number out here.
  def pid_of(outer)
    wait_until("program") { children(outer).any? }
    children(outer).first
  end

  def children(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)

  [[], ["--net"]].each do |network|
    it "is found and asked from outside#{", with a network of its own" if network.any?}" do
      code = "def work = loop { 100.times(&:to_s) }\nputs Rperf.listen\nwork"
      inside = "mount -t tmpfs none #{temporary_folder.shellescape} && exec \"$@\""
      listening(code, before: ["unshare", *flags, *network, "sh", "-c", inside, "sh"]) do |program|
        expect(File.exist?(program.lines.first)).to be(false)
        pid = pid_of(program.pid)
        expect(listed.fetch(pid)).to include("ruby" => RUBY_VERSION, "socket" => end_with(program.lines.first))
        answer = JSON.parse(rperf("stacks", "--json", pid.to_s).stdout)
        expect(answer.fetch("threads").first.fetch("frames").map { |frame| frame["name"] }).to include("Object#work")
      end
    end
  end
end
