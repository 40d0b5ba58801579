# frozen_string_literal: true

require_relative "redis"

module Web
  # Sidekiq in this process, and a Redis of its own. Each job computes as a request does, and pushes a value to the list
  # that its argument names.
  class Jobs
    THREADS = 5

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

    def initialize
      require "sidekiq"
      require "sidekiq/api"
      require "sidekiq/embedded"
      @redis = Redis.new
    end

    def port = @redis.port

    def start
      define_job
      @sidekiq = Sidekiq.configure_embed do |config|
        config.logger = Logger.new($stderr, level: Logger::FATAL)
        config.concurrency = THREADS
        config.redis = { url: @redis.url }
        config.server_middleware { |chain| chain.add(Middleware) }
      end
      @sidekiq.run
    end

    def middleware=(wanted)
      require "rperf/sidekiq" if wanted
      Middleware.inner = (Rperf::SidekiqMiddleware.new if wanted)
    end

    def stop = @redis.stop

    private

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
