# frozen_string_literal: true

require "fileutils"

# examples/container as a reader uses it, but for Docker: the steps of its Containerfile and its `docker run` lines are
# read, and done with namespaces of Linux. The gem has what was built for this checkout, which `bin/package` builds for
# older systems. The image has the system's own files, and Puma from the specs' gems, as nothing can be downloaded.
RSpec.describe "The example of a container", emulated: false,
                                             skip: Containers.missing || Servers.missing("puma", "nio4r") do
  include Servers
  include Containers

  example = File.join(Commands::ROOT, "examples/container")
  lines = File.readlines(File.join(example, "README.md"), chomp: true).grep(/\Adocker run/)
  (app_options,), (options, command) = lines.map { |line| Containers.parsed(line) }

  define_method(:containerfile_of) { |name| Containerfile.new(File.join(example, name), base_environment) }

  # Alpine's is for Rubies that are built for musl.
  let(:containerfile) { containerfile_of(RUBY_PLATFORM.include?("musl") ? "Containerfile.alpine" : "Containerfile") }

  let(:server) do
    FileUtils.cp_r(example, path_to("context"))
    FileUtils.cp(own_gem, path_to("context"))
    start_container(containerfile, app_options)
  end

  # Runs the block while a client asks.
  def under_load
    ends = false
    client = Thread.new { server.get("/orders/17") until ends }
    yield
  ensure
    ends = true
    client.join
  end

  it "has lines that fit the Containerfiles and each other" do
    expect(options).to include("--pid" => "container:#{app_options.fetch("--name")}",
                               "--volume" => app_options.fetch("--volume"))
    %w[Containerfile Containerfile.alpine].map { |name| containerfile_of(name) }.each do |file|
      expect(app_options.fetch("--publish").split(":").last).to eq(file.environment.fetch("PORT"))
      expect(file.user).to match(/\A[1-9]\d*:[1-9]\d*\z/)
    end
  end

  it "serves pages, and shows its time to a second container with its volume and its processes" do
    beside = ->(*words, with: options) { run_beside(server, containerfile, with, words) }
    expect(server.get("/search").body).to eq("results")
    under_load do
      outcome = beside.call(*command, "--interval", "0.5", "-n", "5")
      expect(outcome.status.exitstatus).to eq(0)
      expect(outcome.stdout).to match(/^1 puma.*\[shop\] +wall, 1000 Hz/).and match(/ Prices#total +config\.ru$/)
    end
    expect(beside.call("rperf", "ps").stdout).to match(/^1 .* puma \S+ \(\S+\) \[shop\]$/)
    # It is by the volume that the port is found, and not by looking into the other container.
    expect(beside.call("ls", "/proc/1/root/").status).not_to be_success
    elsewhere = "rperf: a program that has its port here runs in another PID namespace and can't be asked from this one"
    { "--volume" => "", "--pid" => "#{elsewhere} ('rperf help containers')\n" }.each do |left_out, said|
      outcome = beside.call("rperf", "ps", with: options.except(left_out))
      expect([outcome.stdout, outcome.stderr]).to match([start_with("no Ruby program with a port"), said])
    end
  end
end
