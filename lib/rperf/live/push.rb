# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "../web/post"
require_relative "own_port"
require_relative "port"

module Rperf
  # A thread of the program that sends the program's profile, one stretch of time after the other. It sleeps nearly all
  # of the time; the port profiles.
  class Push
    # What has been checked.
    Plan = Struct.new(:destination, :every, :query)
    # Profiles that wait; the oldest is dropped for one more.
    MOST = 4
    # Seconds: how long a profile may take beyond its time, how long nothing is tried if there was none, and how long
    # the program's end waits for the thread.
    PATIENCE = 10
    REST = 5
    LAST_PATIENCE = 0.1
    JOIN = Thread.instance_method(:join)
    private_constant :MOST, :PATIENCE, :REST, :LAST_PATIENCE, :JOIN

    class << self
      # Takes the place of an earlier plan.
      # @param plan [Plan]
      # @raise [Rperf::Error] if there can't be a port or a thread
      def begin(plan)
        require "json"
        OwnPort.load
        Web::Post.load(plan.destination.url)
        Port.begin(nil)
        # Blocks run in forked children, too; and before the port closes.
        at_exit { finish } unless @plan
        @plan = plan
        start
      rescue ThreadError => e
        raise Error, "nothing can be pushed: #{Message.first_line(e)}"
      end

      # A forked child has none of its parent's threads.
      def begin_in_child
        start if @plan
      rescue ThreadError
        nil # It runs without.
      end

      private

      def start
        @thread&.kill
        @thread = Thread.new(@plan) { |plan| new(plan).run }
        @thread.report_on_exception = false
        @thread.name = "rperf push"
        @thread.thread_variable_set(:fork_safe, true)
        # Programs that wait for all threads don't mean this one.
        @thread.define_singleton_method(:join) { |*| self }
        @thread.define_singleton_method(:value) { nil }
      end

      def finish
        @plan = nil
        JOIN.bind_call(@thread.kill, LAST_PATIENCE) if @thread
      end
    end

    def initialize(plan)
      @destination = plan.destination
      @every = plan.every
      @target = "/v1/profile?seconds=#{plan.every}&#{plan.query}"
      @waiting = []
      @failures = 0
      @next_try = 0
    end

    def run
      loop { step }
    rescue Exception => e # rubocop:disable Lint/RescueException -- such as those of libraries that forbid connections.
      Message.say("no more profiles are pushed: #{Message.first_line(e)} (#{e.class})")
    end

    private

    def step
      file = profile
      return sleep(REST) unless file

      @waiting.shift if @waiting.size == MOST
      @waiting << @destination.body(file, Process.pid, $PROGRAM_NAME.to_s)
      send_waiting
    rescue StandardError => e
      say("no profile: #{Message.first_line(e)}")
      sleep(REST)
    end

    # @return [String, nil] of the next stretch of time
    def profile
      answer = OwnPort.ask(Port.begin(nil), @target, patience: @every + PATIENCE)
      return answer.body if answer&.status == 200

      say("no profile: #{answer ? JSON.parse(answer.body)["error"] : "Ruby's VM doesn't answer"}")
    end

    # Where one isn't taken, those behind it wouldn't be either.
    def send_waiting
      while @waiting.any? && now >= @next_try
        answer = Web::Post.call(@destination.url, @destination.headers, @waiting.first, open: nil)
        verdict, text, pause = @destination.verdict(*answer, @failures + 1)
        @waiting.shift unless verdict == :later
        note(verdict, text, pause)
      end
    end

    def note(verdict, text, pause)
      if verdict == :later
        @failures += 1
        @next_try = now + pause
      else
        text ||= "it takes profiles again" if @failures.positive?
        @failures = 0
      end
      @said = nil unless text
      say("#{@destination.shown}: #{text}") if text
    end

    # Once, until there is something else to say.
    def say(line)
      Message.say(line) unless line == @said
      @said = line
      nil
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
  private_constant :Push
end
