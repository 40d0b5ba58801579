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
    # Seconds: how long nothing is done in a forked child, which may only run another program, or end.
    FIRST_REST = 1
    # Seconds: how long a profile may take beyond its time, how long nothing is tried if there was none, and how long
    # the program's end waits for the thread.
    PATIENCE = 10
    REST = 5
    LAST_PATIENCE = 0.1
    # The methods as they are now: a program may put its own in their place.
    JOIN = Thread.instance_method(:join)
    HANDLE_INTERRUPT = Thread.method(:handle_interrupt)
    # The thread has the mask of the one that made it. It can be ended all the same: the program's end depends on that.
    UNMASKED = { Object => :immediate }.freeze
    private_constant :MOST, :FIRST_REST, :PATIENCE, :REST, :LAST_PATIENCE, :JOIN, :HANDLE_INTERRUPT, :UNMASKED

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
        start(0)
      rescue ThreadError => e
        raise Error, "nothing can be pushed: #{Message.first_line(e)}"
      end

      # A forked child has none of its parent's threads.
      def begin_in_child
        start(FIRST_REST) if @plan
      rescue ThreadError => e
        Message.say("process #{Process.pid} pushes nothing: #{Message.first_line(e)}")
      end

      # Once the program ends, or has another plan, nothing may be begun for this one: nobody would end it.
      def goes_on?(plan) = @plan.equal?(plan)

      private

      def start(rest)
        @thread&.kill
        @thread = Thread.new(@plan) { |plan| HANDLE_INTERRUPT.call(UNMASKED) { new(plan).run(rest) } }
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
      @plan = plan
      @destination = plan.destination
      @every = plan.every
      @target = "/v1/profile?seconds=#{plan.every}&#{plan.query}"
      @waiting = []
      @failures = 0
      @lost = 0
      @next_try = 0
    end

    # @param rest [Numeric] seconds before the first profile
    def run(rest)
      sleep(rest)
      step while Push.goes_on?(@plan)
    rescue Exception => e # rubocop:disable Lint/RescueException -- such as those of libraries that forbid connections.
      Message.say("no more profiles are pushed: #{Message.first_line(e)} (#{e.class})")
    end

    private

    def step
      file = profile
      return sleep(REST) unless file

      @lost += 1 if @waiting.size == MOST && @waiting.shift
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
      case verdict
      when :later
        @failures += 1
        @next_try = now + pause
      when :refused
        @lost += 1
      else
        text = [again, text].compact.join("; ") if @failures.positive? || @lost.positive?
        @failures = @lost = 0
      end
      @said = nil unless text
      say("#{@destination.shown}: #{text}") if text
    end

    def again
      return "it takes profiles again" if @lost.zero?

      "it takes profiles again (#{@lost} #{@lost == 1 ? "was" : "were"} lost)"
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
