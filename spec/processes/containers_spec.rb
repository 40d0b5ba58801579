# frozen_string_literal: true

# Linux namespaces stand in for a container: other process numbers, another /tmp, another network.
RSpec.describe "A program in a container", vm: true, if: RUBY_PLATFORM.include?("linux") do
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
    it "is found, asked and profiled from outside#{", with a network of its own" if network.any?}" do
      code = "def work = loop { 100.times(&:to_s) }\nputs Rperf.listen\nwork"
      inside = "mount -t tmpfs none #{temporary_directory.shellescape} && exec \"$@\""
      listening(code, before: ["unshare", *flags, *network, "sh", "-c", inside, "sh"]) do |program|
        expect(File.exist?(program.lines.first)).to be(false)
        pid = pid_of(program.pid)
        expect(listed.fetch(pid)).to include("ruby" => RUBY_VERSION, "socket" => end_with(program.lines.first))
        answer = JSON.parse(rperf("stacks", "--json", pid.to_s).stdout)
        expect(answer.fetch("threads").first.fetch("frames").map { |frame| frame["name"] }).to include("Object#work")
        expect(rperf("attach", pid.to_s, "--duration", "0.3", "-o", "x.pb.gz").status.exitstatus).to eq(0)
        expect(weight_of(read_profile(path_to("x.pb.gz")), "Object#work")).to be > 0
      end
    end
  end

  # The rights of an app's container in a Kubernetes pod, and of one beside it, but for one that lets it read the Ruby
  # of whoever runs the specs.
  def as(user: 1000, group: 1000, rights: "")
    rights = "-all,+dac_read_search#{rights}"
    ["setpriv", "--reuid", user.to_s, "--regid", group.to_s, "--clear-groups", "--inh-caps", rights, "--ambient-caps",
     "+dac_read_search", "--bounding-set", rights]
  end

  def seen(**whose)
    outcome = run(*as(**whose), *rperf_command("ps", "--json"), env: { "TMPDIR" => directory })
    JSON.parse(outcome.stdout).fetch("programs").count { |program| program["program"] == "app of #{directory}" }
  end

  # The user namespace of an emulated run has one user.
  it "is found by a side-car that shares its processes, user, group and rights, and by no other", emulated: false do
    FileUtils.chown(1000, 1000, [directory, temporary_directory])
    inside = "mount -t tmpfs -o mode=1777 none #{temporary_directory.shellescape} && exec \"$@\""
    before = ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, "sh", *as]
    listening("$0 = 'app of #{directory}'; puts Rperf.listen; loop { 1.to_s }", before:) do |program|
      expect(seen).to eq(1)
      attach = rperf_command("attach", "--duration", "0.2", "-o", "x.pb.gz", program.pid.to_s)
      expect(run(*as, *attach).status.exitstatus).to eq(0)
      expect([seen(group: 1001), seen(user: 1001), seen(user: 0, group: 0)]).to eq([0, 0, 0])
    end
  end
end
