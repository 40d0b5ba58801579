# frozen_string_literal: true

require "etc"
require "open3"

# The unit of docs/guide/production.md, step by step: its environment, its directory, its filter, and the command beside
# it. systemd itself need not run.
RSpec.describe "The service of the guide", vm: true do
  include Ports

  text = File.read(File.join(Commands::ROOT, "docs/guide/production.md"))[/^\[Service\]\n.*?(?=^```)/m]
  unit = text.lines(chomp: true).drop(1).map { |line| line.split("=", 2) }
  value = ->(name) { unit.assoc(name).fetch(1) }
  # Numbers of system calls by their names.
  header = Dir["/usr/include/*/asm/unistd_64.h"].first
  analyze = system("systemd-analyze", "--version", out: File::NULL, err: File::NULL)

  # The names in each of systemd's sets, with those of the sets that it has.
  def self.names_in(set, sets)
    sets.fetch(set).flat_map { |name| name.start_with?("@") ? names_in(name, sets) : [name] }.uniq
  end

  def self.sets
    lines = Open3.capture3("systemd-analyze", "syscall-filter").first.lines.grep_v(/^\s*#/).grep(/\S/)
    lines.slice_before(/^@/).to_h { |set, *names| [set.strip, names.map(&:strip)] }
  end

  # Rules of a filter that ends a process for all calls which the unit doesn't name.
  def self.rules(filter, header)
    numbers = File.read(header).scan(/^#define __NR_(\w+) (\d+)/).to_h
    allowed = numbers.values_at(*names_in(filter, sets)).compact
    [*allowed.map { |number| "#{number}=allow" }, "others=kill"].join(",")
  end

  # The environment and the directory that the unit says, but in another place.
  define_method(:service_environment) do
    variable, place = value["Environment"].split("=", 2)
    expect(place).to eq("/run/#{value["RuntimeDirectory"]}")
    directory = path_to("run")
    Dir.mkdir(directory, Integer(value["RuntimeDirectoryMode"], 8))
    { variable => directory }
  end

  it "has a port in its directory, which the command finds" do
    environment = service_environment
    program = "puts 'ready'; $stdout.flush; $stdin.read"
    reader, writer = IO.pipe
    pid = Process.spawn(environment, ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program,
                        in: reader, out: File::NULL)
    wait_until("a socket") { Dir[File.join(environment.values.first, "#{pid}-*.sock")].any? }
    expect(rperf("ps").stdout).to match(/^#{pid} /)
    expect(rperf("stacks", pid.to_s).stdout).to include("IO#read")
  ensure
    [reader, writer].compact.each(&:close)
    Process.wait(pid) if pid
  end

  it "is as systemd reads it", skip: ("there is no systemd-analyze" unless analyze) do
    # The specs may run as a user without a name.
    user = Etc.passwd { |entry| break entry.name if entry.uid == Process.uid } || "root"
    known = text.sub(/^User=.*/, "User=#{user}").sub(/^ExecStart=.*/, "ExecStart=/bin/true")
    outcome = run("systemd-analyze", "verify", "--man=no", write_file("shop.service", known))
    expect([outcome.status.exitstatus, outcome.stderr.lines.grep(/shop\.service:/)]).to eq([0, []])
    wrong = write_file("wrong.service", known.sub("RuntimeDirectoryMode", "RuntimeDirectoryMod"))
    expect(run("systemd-analyze", "verify", "--man=no", wrong).stderr).to match(/wrong\.service:.*RuntimeDirectoryMod/)
  end

  describe "under its filter", emulated: false,
                               skip: ("needs systemd-analyze and the kernel's headers" unless analyze && header) do
    it "answers, and is profiled" do
      rules = self.class.rules(value["SystemCallFilter"], header)
      filter = [ruby, File.join(Commands::ROOT, "spec/security/filtered.rb"), rules]
      # Where the filter is on, to unmount nothing is the end.
      unmount = File.read(header)[/^#define __NR_umount2 (\d+)/, 1]
      expect(run(*filter, ruby, "-W0", "-e", "syscall(#{unmount})").status.termsig).to eq(Signal.list["SYS"])
      work = "trap(:TERM) { exit 7 }; at_exit { File.write('ended', '') }; puts 'ready'; loop { 1.0.to_s }"
      listening(work, env: service_environment, before: filter) do |program|
        pid = program.pid.to_s
        expect(rperf("ps").stdout).to match(/^#{pid} /)
        expect(rperf("stacks", pid).stdout).to include("Float#to_s").or include("Kernel#loop")
        expect(rperf("attach", pid, "--duration", "0.3", "-o", "p.pb.gz").status).to be_success
        expect(rperf("report", "p.pb.gz").stdout).to include("Float#to_s")
        expect(rperf("memory", pid, "--objects").status).to be_success
        expect(rperf("heap", pid).stdout).to match(/objects/)
        Process.kill(:TERM, program.pid)
        wait_until("end of the program") { File.exist?(path_to("ended")) }
      end
    end
  end
end
