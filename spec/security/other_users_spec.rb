# frozen_string_literal: true

require "json"
require "socket"
require "zlib"

# Root may ask the programs of all users. What they say of themselves is theirs to choose.
RSpec.describe "Programs of other users", if: OtherUser::USER do
  include Ports
  include OtherUser

  # No other program on this machine is called so.
  def name = "app of #{File.basename(File.dirname(directory))}"
  def program = "$0 = '#{name}'; puts Rperf.listen; loop { 1.0.to_s }"

  def listed(*) = JSON.parse(rperf("ps", "--json", "--match", name, *).stdout)["programs"].map { |it| it["pid"] }

  def pids_in(path)
    PprofMessage.new(Zlib.gunzip(File.binread(path))).labels.map { |labels| labels["%pid"] }.uniq.map(&:to_i)
  end

  # A process that says it is one of ours, and sends no profile.
  def impostor(place)
    hello = File.read(File.join(Commands::ROOT, "crates/rperf-protocol/golden/least_hello.json")).chomp
    answer = hello.sub('"puma"', name.to_json)
    lambda do |ready|
      UNIXServer.open(File.join(place, "#{Process.pid}-1.sock")) do |server|
        ready.call
        loop { Thread.new(server.accept) { |client| serve(client, answer) } }
      end
    end
  end

  def serve(client, answer)
    while (line = client.gets)
      client.each_line.find { |header| header == "\r\n" }
      next unless line.start_with?("GET /v1/hello")

      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{answer.size}\r\n\r\n#{answer}")
    end
  rescue SystemCallError
    nil
  end

  it "aren't asked by root, unless their user or all users are named" do
    others_program(program) do |other|
      expect(listed).to eq([])
      outcome = rperf("ps")
      expect(outcome.messages.last).to match(/\Arperf: \d+ programs? with a port .*: see --user NAME or --all-users\n/)
      expect(listed("--all-users")).to eq([other.pid])
      [OtherUser::NAME, OtherUser::USER.to_s].each { |user| expect(listed("--user", user)).to eq([other.pid]) }
      listening(program) do |ours|
        expect(listed).to eq([ours.pid])
        expect(listed("--user", "root", "--user", OtherUser::NAME)).to contain_exactly(ours.pid, other.pid)

        profile = ["attach", "--match", name, "--duration", "0.2", "-o", "x.pb.gz"]
        expect(rperf(*profile).status).to be_success
        # One program alone has no label with its process.
        expect(pids_in(path_to("x.pb.gz"))).to eq([0])
        expect(rperf(*profile, "--all-users").status).to be_success
        expect(pids_in(path_to("x.pb.gz"))).to contain_exactly(ours.pid, other.pid)

        lines = rperf("top", "--json", "--once", "--match", name).stdout.lines
        expect(lines.map { |line| JSON.parse(line)["pid"] }).to eq([ours.pid])
      end
      # Whom root names by its number is meant.
      expect(rperf("stacks", other.pid.to_s).status).to be_success
      outcome = rperf("top", "--once", "--match", name)
      expect([outcome.status.exitstatus, outcome.stderr])
        .to match([1, /no program with a port matches '#{name}'; \d+ .* see --user NAME or --all-users/])
    end
  end

  it "don't keep out those of root, however many they are" do
    others_public_directory do |place|
      others_processes(70, impostor(place)) do
        listening(program) do |ours|
          expect(listed).to eq([ours.pid])
          expect(listed("--all-users").size).to eq(65)
          expect(pids_in(served("--all-users"))).to eq([ours.pid])
          expect_ours_of_too_many(ours)
        end
      end
    end
  end

  # 64 programs at a time, each user's in turn.
  def expect_ours_of_too_many(ours)
    outcome = rperf("attach", "--match", name, "--all-users", "--duration", "0.2", "-o", "x.pb.gz")
    expect(outcome.messages).to include("rperf: left out: 1 more program; at most 64 at a time\n")
    # The others send none, and that of one program alone has no label with its process.
    expect([outcome.status.exitstatus, pids_in(path_to("x.pb.gz"))]).to eq([1, [0]])

    outcome = rperf("top", "--json", "--once", "--all-users", "--match", name)
    expect(outcome.messages).to include("rperf: left out: 1 more program; at most 64 at a time\n")
    expect(outcome.stdout.lines.map { |line| JSON.parse(line)["pid"] }).to eq([ours.pid])
  end

  # The file with the profile that a server has for these.
  def served(*)
    socket = path_to("serve.sock")
    command = rperf_command("serve", *, "--match", name, "--http", socket)
    server = Process.spawn(clean_environment, *command, chdir: directory, err: path_to("err"))
    wait_until("server") { File.exist?(path_to("err")) && File.read(path_to("err")).include?("serving") }
    UNIXSocket.open(socket) do |client|
      client.write("GET /debug/pprof/profile?seconds=0.3 HTTP/1.1\r\nHost: localhost\r\n\r\n")
      path_to("served.pb.gz").tap { |path| File.binwrite(path, client.read.split("\r\n\r\n", 2).last) }
    end
  ensure
    Process.kill(:TERM, server)
    Process.wait(server)
  end

  it "are named by users that exist, and beside no process" do
    { %w[ps --user no.such.user] => "--user: there is no user 'no.such.user'",
      %w[stacks 1 --all-users] => "there is no option '--all-users'",
      %w[attach 1 --all-users] => "--user and --all-users don't go with PIDs, only with --match" }.each do |words, line|
      outcome = rperf(*words)
      expect([outcome.status.exitstatus, outcome.stderr.lines.size, outcome.stderr]).to match([2, 1, include(line)])
    end
  end

  it "aren't asked by a user who isn't root" do
    outcome = run(*OtherUser::COMMAND, *rperf_command("ps", "--user", "root"))
    expect([outcome.status.exitstatus, outcome.stderr])
      .to eq([2, "rperf: --user 'root': only root can ask programs of other users\n"])
    expect(run(*OtherUser::COMMAND, *rperf_command("ps", "--all-users")).status).to be_success
  end
end
