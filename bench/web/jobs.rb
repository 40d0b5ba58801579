# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "socket"
require "tmpdir"

module Web
  # Sidekiq in this process, and a Redis of its own. Each job computes as a request does, and pushes a value to the list
  # that its argument names.
  class Jobs
    THREADS = 5
    CHECKOUT = File.expand_path("../..", __dir__)
    private_constant :CHECKOUT

    # One that may be exchanged while Sidekiq runs.
    class Middleware
      class << self
        attr_accessor :inner
      end

      def call(*, &)
        inner = self.class.inner
        inner ? inner.call(*, &) : yield
      end
    end

    attr_reader :port

    # @return [String, nil] the path of Redis, or of Valkey
    def self.redis
      directories = [File.join(CHECKOUT, "tmp/bin"), *ENV["PATH"].split(File::PATH_SEPARATOR)]
      paths = directories.product(%w[redis-server valkey-server]).map { |parts| File.join(*parts) }
      paths.find { |path| File.executable?(path) }
    end

    def initialize(_front)
      require "sidekiq"
      require "sidekiq/api"
      require "sidekiq/embedded"
      @directory = Dir.mktmpdir("rperf-bench")
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      @redis = Process.spawn(self.class.redis || raise(LoadError, "no redis-server"),
                             "--port", @port.to_s, "--bind", "127.0.0.1", "--dir", @directory, "--save", "",
                             "--appendonly", "no", out: File::NULL, err: File::NULL)
      wait_for_redis
    end

    def start
      define_job
      @sidekiq = Sidekiq.configure_embed do |config|
        config.logger = Logger.new($stderr, level: Logger::FATAL)
        config.concurrency = THREADS
        config.redis = { url: "redis://127.0.0.1:#{@port}/0" }
        config.server_middleware { |chain| chain.add(Middleware) }
      end
      @sidekiq.run
    end

    def middleware=(wanted)
      require "rperf/sidekiq" if wanted
      Middleware.inner = (Rperf::SidekiqMiddleware.new if wanted)
    end

    def stop
      Process.kill(:KILL, @redis)
      Process.wait(@redis)
      FileUtils.remove_entry(@directory)
    end

    private

    def wait_for_redis
      TCPSocket.open("127.0.0.1", @port).close
    rescue Errno::ECONNREFUSED
      raise LoadError, "Redis has ended" if Process.wait(@redis, Process::WNOHANG)

      sleep(0.01)
      retry
    end

    def define_job
      job = Class.new do
        include Sidekiq::Job

        def perform(list)
          App.call(nil)
          Sidekiq.redis { |redis| redis.call("LPUSH", list, 1) }
        end
      end
      Web.const_set(:BenchJob, job)
    end
  end
end
