# frozen_string_literal: true

require_relative "../errors"
require_relative "../message"
require_relative "../web/post"
require_relative "own_port"
require_relative "own_thread"
require_relative "port"

module Rperf
  # A thread of the program that sends the program's profile, one stretch of time after the other. It sleeps nearly all
  # of the time; the port profiles, and the extension says what is sent when.
  class Push
    # What has been checked.
    Plan = Struct.new(:destination, :every, :query)
    # Seconds: how long nothing is done in a forked child, which may only run another program, or end.
    FIRST_REST = 1
    # Seconds: how long a profile may take beyond its time, how long nothing is tried if there was none, and how long
    # the program's end waits for the thread.
    PATIENCE = 10
    REST = 5
    LAST_PATIENCE = 0.1
    private_constant :FIRST_REST, :PATIENCE, :REST, :LAST_PATIENCE

    class << self
      # Takes the place of an earlier plan.
      # @raise [Rperf::Error] if there can't be a port or a thread
      def begin(plan)
        require "json"
        OwnPort.load
        Web::Post.load(plan.destination.url)
        Port.begin(nil)
        Port.client = self
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
        @thread = Thread.new(@plan) { |plan| OwnThread.unmasked { new(plan).run(rest) } }
        OwnThread.prepare(@thread, "rperf push")
      end

      def finish
        @plan = nil
        OwnThread.await(@thread.kill, LAST_PATIENCE) if @thread
      end
    end

    def initialize(plan)
      @plan = plan
      @sender = plan.destination.sender
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

      @sender.add(@plan.destination.body(file, Process.pid, $PROGRAM_NAME.to_s))
      send_waiting
    rescue StandardError => e
      no_profile(Message.first_line(e))
      sleep(REST)
    end

    # @return [String, nil] of the next stretch of time
    def profile
      target = "/v1/profile?seconds=#{@plan.every}&#{@plan.query}"
      answer = OwnPort.ask(Port.begin(nil), target, patience: @plan.every + PATIENCE)
      return answer.body if answer&.status == 200

      no_profile(answer ? JSON.parse(answer.body)["error"] : "Ruby's VM doesn't answer")
    end

    def send_waiting(answer = nil)
      body, lines = @sender.step(now, answer)
      lines.each { |line| Message.say(line) }
      return unless body

      send_waiting(Web::Post.call(@plan.destination.url, @plan.destination.headers, body, open: nil))
    end

    # @return [nil]
    def no_profile(why)
      line = @sender.once("no profile: #{why}")
      Message.say(line) if line
      nil
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
  private_constant :Push
end
