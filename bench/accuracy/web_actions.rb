# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../support/clock"
require_relative "../support/shares"
require_relative "../web/servers"
require_relative "scenario"

module Accuracy
  # Actions of a web application under Puma, or a server of sockets alone, at 80 requests a second over four
  # connections: each works 0.3 to 3 ms and then waits for the next request. The truth is each action's own CPU clock
  # (in wall mode the clock on the wall). The figures:
  #
  # - worst share: by how many points the share of an action among all actions is off where it is off most.
  # - sum: by how many percent the time of all actions is off.
  # - by chance: what the largest share would be off on average if the samples were a draw. 30 s make that 0.6.
  class WebActions < Scenario
    # us of work.
    ACTIONS = { "quick" => 300, "middle" => 1000, "slow" => 3000 }.freeze
    CONNECTIONS = 4
    RATE = 80
    WARM_UP = 1.0
    ANSWER = [200, { "content-type" => "text/plain", "content-length" => "3" }, ["ok\n"]].freeze
    CLIENT = File.expand_path("../web/client.rb", __dir__)

    # The application. It chooses an action itself, and keeps its times by thread, as a sum that threads share would
    # lose some.
    class App
      # @return [Integer, nil] of Process.clock_gettime; nil: nothing is kept
      attr_accessor :clock

      def initialize(random, turns)
        @random = random
        @turns = turns
        @threads = {}.compare_by_identity
      end

      def call(_)
        action = ACTIONS.keys[@random.rand(ACTIONS.size)]
        clock = @clock
        began = clock && Process.clock_gettime(clock, :nanosecond)
        public_send(action)
        times[action] += Process.clock_gettime(clock, :nanosecond) - began if clock
        status, headers, body = ANSWER
        [status, headers.dup, body]
      end

      def quick = work(ACTIONS["quick"])
      def middle = work(ACTIONS["middle"])
      def slow = work(ACTIONS["slow"])

      # @return [Hash{String => Integer}] ns by action
      def truth = @threads.values.reduce { |sum, one| sum.merge(one) { |_, ns, more| ns + more } }

      private

      def times = @threads[Thread.current] ||= Hash.new(0)

      def work(length)
        turns = @turns * length
        turns -= 1 while turns.positive?
      end
    end

    def initialize(server)
      super()
      @server = server
    end

    def frequencies = [1000]
    def bounds = { "worst share, points" => (..2.0), "sum, %" => (..2.0) }

    # @return [Hash{String => Float}] the figures
    def call(measurement)
      app = App.new(measurement.random, turns_per_microsecond)
      server = @server.new(app)
      server.start
      load(server, WARM_UP)
      profile = measurement.profile do
        app.clock = measurement.mode == :cpu ? Process::CLOCK_THREAD_CPUTIME_ID : Process::CLOCK_MONOTONIC
        load(server, measurement.seconds)
      end
      figures(app.truth, Bench::Shares.by_method(profile, ACTIONS.keys).except("other"), profile)
    ensure
      server&.stop
    end

    private

    def turns_per_microsecond
      started = Bench::Clock.thread_cpu
      turns = 1_000_000
      turns -= 1 while turns.positive?
      1_000_000_000 / (Bench::Clock.thread_cpu - started)
    end

    def load(server, seconds)
      command = [RbConfig.ruby, CLIENT, "web", server.port, CONNECTIONS, RATE, seconds].map(&:to_s)
      system(*command, out: File::NULL, exception: true)
    end

    def figures(truth, measured, profile)
      sums = [truth, measured].map { |times| times.values.sum.to_f }
      samples = sums.last * profile[:frequency] / 1e9
      {
        "worst share, points" => Bench::Shares.points(truth, measured).values.map(&:abs).max,
        "sum, %" => ((sums.last / sums.first) - 1).abs * 100,
        "by chance" => Bench::Shares.by_chance(truth, samples).values.max
      }
    end
  end
end
