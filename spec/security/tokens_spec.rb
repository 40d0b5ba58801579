# frozen_string_literal: true

require "socket"

# Whoever has the token of a port can profile the program.
RSpec.describe "Tokens and passwords" do
  include Ports

  token = "a-token-of-our-own"

  def program(code = "puts 'runs'", **env)
    run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env: env.transform_keys(&:to_s))
  end

  def status(url, token)
    uri = URI(url)
    TCPSocket.open(uri.host, uri.port) do |server|
      server.write("GET /v1/hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" \
                   "Authorization: Bearer #{token}\r\n\r\n")
      server.gets[/\d{3}/].to_i
    end
  end

  it "can be in a file, which children can't read out of the environment", vm: true do
    path = write_file("token", "#{token}\n")
    File.chmod(0o600, path)
    listening("puts Rperf.listen('tcp://127.0.0.1:0'); sleep", env: { "RPERF_LISTEN_TOKEN_FILE" => path }) do |it|
      expect(status(it.lines.first, token)).to eq(200)
      expect(status(it.lines.first, token.reverse)).to eq(401)
      expect(Dir[File.join(temporary_directory, "rperf-*", "*.token")]).to eq([])
    end
  end

  it "can be given where the program is also profiled, or has accounts", vm: true do
    path = write_file("token", token)
    File.chmod(0o600, path)
    modes = [{ "RPERF_OUTPUT" => path_to("out.pb.gz") }, { "RPERF_MODE" => "account" }]
    tokens = [{ "RPERF_LISTEN_TOKEN" => token }, { "RPERF_LISTEN_TOKEN_FILE" => path }]
    modes.product(tokens) do |mode, given|
      address = "127.0.0.1:#{Servers.free_port}"
      env = { "RPERF_ENABLED" => "1", "RPERF_LISTEN" => "tcp://#{address}", **given, **mode }
      listening("p ENV.keys.grep(/TOKEN/); sleep", env:) do |it|
        # With accounts the variables are there for children, which have their own.
        expect(it.lines).to eq([mode.key?("RPERF_MODE") ? given.keys.inspect : "[]"])
        expect([token, token.reverse].map { |one| status("http://#{address}", one) }).to eq([200, 401])
      end
    end
  end

  it "aren't taken from a file in which others have a hand, nor waited for" do
    path = write_file("token", token)
    File.mkfifo(path_to("pipe"), 0o600)
    tcp = { RPERF_LISTEN: "tcp://127.0.0.1:0" }
    { path => "must be a file of yours with mode 600", path_to("pipe") => "must be a file of yours with mode 600",
      path_to("none") => "(No such file or directory" }.each do |place, line|
      outcome = program(**tcp, RPERF_LISTEN_TOKEN_FILE: place)
      expect([outcome.stdout, outcome.stderr.lines.size, outcome.stderr])
        .to match(["runs\n", 1, /\Arperf: no port: RPERF_LISTEN_TOKEN_FILE: .*#{Regexp.escape(line)}/])
    end
    outcome = program(**tcp, RPERF_LISTEN_TOKEN_FILE: path, RPERF_LISTEN_TOKEN: token)
    expect(outcome.stderr).to include("RPERF_LISTEN_TOKEN and RPERF_LISTEN_TOKEN_FILE can't both be set")
  end

  it "aren't in a file of another user", if: OtherUser::USER do
    path = write_file("token", token)
    File.chmod(0o600, path)
    File.chown(OtherUser::USER, OtherUser::USER, path)
    outcome = program(RPERF_LISTEN: "tcp://127.0.0.1:0", RPERF_LISTEN_TOKEN_FILE: path)
    expect(outcome.stderr).to include("must be a file of yours with mode 600")
  end

  it "would go to whoever has the program's address, so a line says that and whose process it is" do
    code = "require 'socket'; server = TCPServer.new('127.0.0.1', 0); puts server.addr[1]; sleep"
    user = OtherUser::USER || Process.euid
    listening(code, before: OtherUser::USER ? OtherUser::COMMAND : []) do |squatter|
      address = "127.0.0.1:#{squatter.lines.first}"
      outcome = program("puts Rperf.listen", RPERF_LISTEN: "tcp://#{address}")
      expect(outcome.stdout).to end_with(".sock\n")
      holder = RUBY_PLATFORM.include?("linux") ? ", which a process of uid #{user} has" : ""
      expect(outcome.stderr).to match(/\Arperf: can't listen at #{address} \(Address already in use[^)]*\)#{holder}; /)
      expect(outcome.stderr.lines.size).to eq(1)
    end
  end

  it "in the command line are warned of" do
    { %w[--to http://u:p@127.0.0.1:1] => 1, ["--to", "http://127.0.0.1:1", "--header", "Authorization: Bearer x"] => 1,
      %w[--to http://127.0.0.1:1] => 0 }.each do |words, count|
      lines = ended_push(*words)
      expect(lines.grep(/lists of processes show the password .*; RPERF_PUSH_AUTHORIZATION hides it/).size).to eq(count)
      expect(lines.grep(/u:p/)).to eq([])
    end
  end

  # The lines of one that finds no program, and is ended.
  def ended_push(*words)
    command = rperf_command("push", *words, "--match", "^no such program $")
    pid = Process.spawn(clean_environment, *command, chdir: directory, err: path_to("err"))
    wait_until("push") { File.exist?(path_to("err")) && File.read(path_to("err")).include?("sending a profile to") }
    Process.kill(:TERM, pid)
    Process.wait(pid)
    File.readlines(path_to("err"))
  end

  it "aren't put into command lines by what rperf prints or documents" do
    files = Dir[File.join(Commands::ROOT, "{README.md,docs/**/*.md,examples/**/*.md,crates/*/src/**/*.rs,lib/**/*.rb}")]
    expect(files.size).to be > 100
    expect(files.select { |file| File.read(file).match?(/\$\w*TOKEN@/) }).to eq([])
  end
end
