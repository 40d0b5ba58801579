# frozen_string_literal: true

require "fileutils"
require "net/http"
require "socket"
require "tmpdir"

# Real servers, each on a free port of the loopback interface and in a process group of its own. None outlives its
# example. Goes with Commands.
module Servers
  HOST = "127.0.0.1"
  REDIS_LOCK = File.join(Dir.tmpdir, "rperf-redis-#{Process.uid}.lock")
  # Below the ports that systems give out by themselves: nobody gets one by chance between its choice and its use.
  PORTS = 10_000...30_000

  # Puma, if it is stopped while it has nothing to do, may close a pipe just when its main thread comes back from
  # writing to it. Ruby 3.4 can then miss that the thread has left the pipe, and `close` waits for ever ("No live
  # threads left. Deadlock?"), without rperf no less often. So the threads that serve requests, on whose ends Puma waits
  # before, take their time.
  PUMA_CONFIG = "on_thread_exit { sleep 0.05 }\n"

  # One that runs, or ran.
  Server = Struct.new(:name, :pid, :port, :out, :err, :status, keyword_init: true) do
    def url = "http://#{HOST}:#{port}"

    def output = File.read(out) + File.read(err)

    # The response to one request.
    def get(path) = connected { |http| http.get(path) }

    # The responses to all requests, in the order of the paths; so many clients share them, each on a connection
    # that is kept.
    def get_all(paths, clients: 4)
      responses = []
      queue = Queue.new(paths.each_with_index).close
      threads = Array.new(clients) do
        Thread.new { connected { |http| take_requests(http, queue, responses) } }
      end
      threads.each(&:join)
      responses
    end

    private

    def take_requests(http, queue, responses)
      while (path, index = queue.pop)
        responses[index] = http.get(path)
      end
    end

    def connected(&)
      # With a time limit for opening, Timeout would leave its thread in this process, to be profiled by later examples.
      Net::HTTP.start(HOST, port, open_timeout: nil, read_timeout: Commands::TIME_LIMIT * Commands::SLOWNESS, &)
    end
  end

  # What a gem requires and doesn't say, because older versions of Ruby had it.
  UNSAID = { "railties" => ["tsort"] }.freeze

  # Why a spec that needs these (gems, or "redis-server") has to be skipped; nil if it need not be. It goes into an
  # example group's `skip:`.
  def self.missing(*names)
    names.flat_map { |name| [name, *UNSAID[name]] }.each do |name|
      there = name == "redis-server" ? redis_server : Gem::Specification.find_all_by_name(name).any?
      return "needs #{name}, which was not found" unless there
    end
    nil
  end

  # The path of Redis, or of Valkey, which takes the same options.
  def self.redis_server
    directories = [File.join(Commands::ROOT, "tmp/bin"), *ENV["PATH"].split(File::PATH_SEPARATOR)]
    paths = directories.product(%w[redis-server valkey-server]).map { |parts| File.join(*parts) }
    paths.find { |path| File.executable?(path) }
  end

  # One that nobody listens at.
  def self.free_port
    port = rand(PORTS)
    TCPServer.open(HOST, port).close
    port
  rescue Errno::EADDRINUSE
    retry
  end

  def self.included(group)
    group.after do
      servers.each { |server| end_process(server) }
      @redis_lock&.close
    end
  end

  # Of this example.
  def servers = @servers ||= []

  # A gem's command, by the path of its script, so that `rperf record` or a shell can start it.
  def gem_command(gem, name = gem) = [ruby, Gem.bin_path(gem, name)]

  # Where an app finds the gems, and this checkout's rperf.
  def app_environment
    environment = { "RUBYLIB" => File.join(Commands::ROOT, "lib"), "RACK_ENV" => "production" }
    return environment unless defined?(Bundler)

    environment.merge(ENV.to_h.slice("BUNDLE_GEMFILE", "BUNDLE_PATH", "BUNDLE_WITHOUT"), "RUBYOPT" => "-rbundler/setup")
  end

  # Puma, on a config.ru of the example's directory; `config` is what its config/puma.rb would say. `under` is a command
  # that starts others: `rperf record`, say.
  def start_puma(*arguments, app: "config.ru", config: "", under: [], env: {})
    configure_puma(config)
    start_server("Puma", env:) do |port|
      [*under, *gem_command("puma"), "-b", "tcp://#{HOST}:#{port}", *arguments, app]
    end
  end

  # rackup with "webrick" or "puma".
  def start_rackup(server, *arguments, app: "config.ru", under: [], env: {})
    configure_puma("")
    start_server("rackup", env:) do |port|
      [*under, *gem_command("rackup"), "-s", server, "-o", HOST, "-p", port, *arguments, app]
    end
  end

  # Redis, which keeps nothing on disk. There is one at a time, whatever other specs run.
  def start_redis
    @redis_lock ||= File.open(REDIS_LOCK, File::RDWR | File::CREAT).tap { |lock| lock.flock(File::LOCK_EX) }
    ready = ->(redis) { ask_redis(redis, "PING") == "+PONG" }
    start_server("Redis", ready:) do |port|
      [Servers.redis_server, "--port", port, "--bind", HOST, "--dir", directory, "--save", "", "--appendonly", "no"]
    end
  end

  def redis_url(redis) = "redis://#{HOST}:#{redis.port}/0"

  # Sidekiq with the jobs that the file defines; REDIS_URL is set.
  def start_sidekiq(redis, file, *arguments, under: [], env: {})
    processes = ask_redis(redis, "SCARD processes")
    ready = ->(_) { ask_redis(redis, "SCARD processes") != processes }
    start_server("Sidekiq", env: { "REDIS_URL" => redis_url(redis), **env }, ready:) do
      [*under, *gem_command("sidekiq"), "-r", path_to(file), *arguments]
    end
  end

  # Redis's answer to one command: its first line, as the protocol has it.
  def ask_redis(redis, command)
    TCPSocket.open(HOST, redis.port) do |socket|
      socket.write("#{command}\r\n")
      socket.gets&.chomp
    end
  rescue SystemCallError
    nil
  end

  # The processes that `server` has forked and that run now.
  def workers(server)
    Dir["/proc/#{server.pid}/task/*/children"].flat_map do |path|
      File.read(path).split.map(&:to_i)
    rescue Errno::ENOENT, Errno::ESRCH
      [] # The thread has ended.
    end
  end

  # Starts the command that the block makes of a free port, in the example's directory, and waits until it is ready:
  # until it takes connections, if nothing else is said.
  def start_server(name, env: {}, ready: method(:listening?))
    port = Servers.free_port
    command = yield(port).map(&:to_s)
    out, err = %w[out err].map { |stream| path_to(".server#{servers.size}.#{stream}") }
    pid = Process.spawn(clean_environment.merge(app_environment, env), *command,
                        chdir: directory, pgroup: true, in: File::NULL, out:, err:)
    server = Server.new(name:, pid:, port:, out:, err:).tap { |new| servers << new }
    wait_until("#{name} to talk to") do
      raise "#{name} ended at once (#{server.status}):\n#{server.output}" if ended?(server)

      ready.call(server)
    end
    server
  end

  # Sends the signal and waits for the end of the server, and of all that it started.
  def stop_server(server, signal: :TERM, limit: Commands::TIME_LIMIT)
    Process.kill(signal, server.pid)
    wait_until("end of #{server.name}", limit:) { ended?(server) }
    wait_until("end of what #{server.name} started", limit:) { !group_alive?(server) }
    Commands::Outcome.new(File.binread(server.out), File.read(server.err), server.status)
  end

  private

  def configure_puma(config)
    FileUtils.mkdir_p(path_to("config"))
    write_file("config/puma.rb", PUMA_CONFIG + config)
  end

  def listening?(server)
    TCPSocket.open(HOST, server.port).close
    true
  rescue SystemCallError
    false
  end

  # Reaps it, too.
  def ended?(server) = server.status ||= Process.wait2(server.pid, Process::WNOHANG)&.last

  def group_alive?(server)
    Process.kill(0, -server.pid)
    true
  rescue Errno::ESRCH
    false
  end

  # Whatever state it is in.
  def end_process(server)
    note_crash_by(server.status)
    return if server.status && !group_alive?(server)

    Process.kill(:KILL, -server.pid)
    server.status ||= Process.wait2(server.pid).last.tap { |status| note_crash_by(status) }
  rescue Errno::ESRCH
    nil
  end
end
