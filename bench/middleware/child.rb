# frozen_string_literal: true

# child.rb KIND ROUNDS REQUESTS: calls middleware of that kind in each of its sessions, in turn, and prints as JSON how
# long the requests of each round took, in ns.

require "json"
require "rperf"
require_relative "../support/clock"
require_relative "../support/interleave"
require_relative "../support/statistics"

module Middleware
  # A request of Rack, with an environment as Puma makes it.
  class Rack
    ENVIRONMENT = {
      "rack.version" => [1, 6], "rack.errors" => $stderr, "rack.multithread" => true, "rack.multiprocess" => false,
      "rack.run_once" => false, "rack.url_scheme" => "http", "SCRIPT_NAME" => "", "QUERY_STRING" => "page=2",
      "SERVER_SOFTWARE" => "puma", "GATEWAY_INTERFACE" => "CGI/1.2", "REQUEST_METHOD" => "GET",
      "REQUEST_PATH" => "/orders/17", "REQUEST_URI" => "/orders/17?page=2", "SERVER_PROTOCOL" => "HTTP/1.1",
      "HTTP_HOST" => "localhost", "HTTP_ACCEPT" => "*/*", "HTTP_USER_AGENT" => "bench", "SERVER_NAME" => "localhost",
      "SERVER_PORT" => "80", "PATH_INFO" => "/orders/17", "REMOTE_ADDR" => "127.0.0.1"
    }.freeze
    APP = ->(_environment) { [200, {}, []] }

    def initialize
      require "rperf/rack"
      @middleware = Rperf::RackMiddleware.new(APP)
    end

    def prepare = ENVIRONMENT.dup
    def call(environment) = @middleware.call(environment)
    def call_alone(environment) = APP.call(environment)
  end

  # A job of Sidekiq.
  class Sidekiq
    JOB = { "class" => "Import", "args" => [1], "queue" => "default", "jid" => "b4a577edbccf1d805744efa9" }.freeze

    def initialize
      require "rperf/sidekiq"
      @middleware = Rperf::SidekiqMiddleware.new
    end

    def prepare = JOB.dup
    def call(job) = @middleware.call(self, job, "default") { work }
    def call_alone(_) = work
    def work = nil
  end

  KINDS = { "rack" => Rack, "sidekiq" => Sidekiq }.freeze
  WALL = ->(**with) { Rperf.start(mode: :wall, frequency: 99, **with) }
  # How each is begun and ended.
  SESSIONS = {
    "no middleware" => [-> {}, -> {}],
    "no session" => [-> {}, -> {}],
    "accounts" => [-> { Rperf.start(mode: :account) }, -> { Rperf.stop(mode: :account) }],
    "wall 99 Hz" => [WALL, -> { Rperf.stop }],
    "wall 99 Hz, requests" => [-> { WALL[measure: :requests] }, -> { Rperf.stop }]
  }.freeze
  WARM_UP = 200

  # Measures.
  class Rounds
    # Words of 8 bytes, one of each cache line is read.
    MEMORY = Array.new((4 << 20) / 8, &:itself)

    def initialize(kind, requests)
      @kind = KINDS.fetch(kind).new
      @requests = requests
    end

    # @return [Float] the median of a round, in ns
    def time(session, caches)
      start, stop = SESSIONS.fetch(session)
      method = @kind.method(session == "no middleware" ? :call_alone : :call)
      start.call
      WARM_UP.times { method.call(@kind.prepare) }
      Bench::Statistics.median(Array.new(@requests) { one(method, caches) })
    ensure
      stop.call
    end

    private

    def one(method, caches)
      request = @kind.prepare
      read_memory if caches == "cold"
      started = Bench::Clock.wall
      method.call(request)
      Bench::Clock.wall - started
    end

    def read_memory
      sum = index = 0
      while index < MEMORY.size
        sum += MEMORY[index]
        index += 8
      end
      sum
    end
  end
end

kind, *numbers = ARGV
runs, requests = numbers.map { |number| Integer(number) }
rounds = Middleware::Rounds.new(kind, requests)
variants = Middleware::SESSIONS.keys.product(%w[warm cold])
results = Bench::Interleave.call(variants, runs:) { |session, caches| rounds.time(session, caches) }
puts JSON.generate(results.map { |(session, caches), times| { session:, caches:, rounds: times } })
