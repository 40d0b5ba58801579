# frozen_string_literal: true

require "net/http"
require "socket"

# Everybody on a machine can connect to a loopback address.
RSpec.describe "The viewer's server", if: RUBY_PLATFORM.include?("linux") do
  include OtherUser

  # Starts it, yields its process and the address of the page, and ends it.
  def viewing(*before)
    Rperf.save(path_to("rperf.data"), { mode: :wall, frequency: 1000, duration_ns: 10**9,
                                        samples: [[[["/app/main.rb", "<main>"]], 1_000_000, 1, 0, 1, 1]] })
    reader, writer = IO.pipe
    env = { "BROWSER" => nil, "SSH_TTY" => nil, "SSH_CONNECTION" => nil }
    command = [*before, *rperf_command("report", "--web", "--no-browser", "rperf.data")]
    pid = Process.spawn(clean_environment.merge(env), *command, chdir: directory, err: writer)
    writer.close
    yield pid, URI(reader.gets[%r{http://\S+/}])
  ensure
    Process.kill(:TERM, pid)
    Process.wait(pid)
    reader.close
  end

  # The status of the page; nil where the connection is ended.
  def status(url, limit: 4)
    Net::HTTP.start(url.host, url.port, read_timeout: limit * Commands::SLOWNESS, max_retries: 0) do |http|
      http.get(url.path).code
    end
  rescue EOFError, Errno::ECONNRESET, Net::ReadTimeout
    nil
  end

  # Has more connections than are answered, always, each of which sends a byte now and then.
  def crowd(url)
    lambda do |ready|
      clients = []
      loop do
        clients << TCPSocket.new(url.host, url.port) while clients.size < 80
        clients.select! { |client| sends?(client) }
        ready&.call
        ready = nil
        sleep 0.1
      end
    end
  end

  def sends?(client)
    client.write_nonblock("G")
    client.read_nonblock(1, exception: false) == :wait_readable
  rescue SystemCallError
    false
  end

  it "answers its user though other users take all the room that they get", if: OtherUser::USER do
    viewing do |_, url|
      others_processes(2, crowd(url)) do
        expect(Array.new(5) { status(url).tap { sleep 0.2 } }).to eq(["200"] * 5)
      end
      expect(status(url)).to eq("200")
    end
  end

  it "gives the room of those who ask nothing to those who ask" do
    viewing do |_, url|
      clients = Array.new(40) { TCPSocket.new(url.host, url.port) }
      expect(status(url)).to eq("200")
      clients.each { |client| client.write("GET") }
      expect(status(url)).to eq("200")
      # However slowly they send it, a request has a time.
      wait_until("end of all", limit: 30) { clients.none? { |client| sends?(client) } }
    ensure
      clients&.each(&:close)
    end
  end

  it "goes on when there is no thread for an answer", if: OtherUser::USER do
    File.chmod(0o755, directory)
    viewing(*OtherUser::COMMAND) do |pid, url|
      expect(status(url)).to eq("200")
      usual = run(*OtherUser::COMMAND, "prlimit", "--nproc", "--noheadings", "--output", "SOFT").stdout.strip
      limit = ["prlimit", "--pid", pid.to_s]
      expect(run(*OtherUser::COMMAND, *limit, "--nproc=1:").status).to be_success
      expect(status(url)).to be_nil
      expect(run(*OtherUser::COMMAND, *limit, "--nproc=#{usual}:").status).to be_success
      expect(status(url)).to eq("200")
    end
  end
end
