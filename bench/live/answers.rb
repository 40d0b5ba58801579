# frozen_string_literal: true

require_relative "figure"
require_relative "program"

module Live
  # How long answers take, and how long they keep the GVL.
  class Answers
    HELLO = "/v1/hello"
    STACKS = "/v1/stacks"
    SESSION = ["/v1/session?mode=wall&frequency=1000", "POST"].freeze
    def initialize(options)
      @options = options
    end

    def figures = [*hellos, *attaches, *stacks]

    private

    def hellos
      idle = Program.open { |program| times(program, HELLO) }
      busy = Program.open({ busy: 4 }) { |program| times(program, HELLO) }
      kept = Program.open { |program| while_kept(program) { |port| times_of(port, HELLO, @options[:kept] / 2) } }
      { "idle" => idle, "4 busy threads" => busy, "a C method keeps the GVL" => kept }.filter_map do |what, times|
        times && Figure.p99("hello, #{what}: p99", times, "ms", 2)
      end
    end

    def times(program, target, seconds = @options[:seconds])
      program.ask { |port| times_of(port, target, seconds) }
    end

    # The first answer is left out: it connects.
    def times_of(port, target, seconds)
      port.get(target)
      over = Bench::Clock.wall + (seconds * 1e9)
      times = []
      times << (port.time(target) / 1e6) while Bench::Clock.wall < over
      times
    end

    def while_kept(program, &)
      return if Bench::Native.missing

      program.begin("keep", @options[:kept])
      sleep @options[:kept] / 10
      program.ask(&).tap { program.answer }
    end

    # From the connection to a session that runs.
    def attaches
      cases = { "idle, with a helper" => [{}, { "RPERF_LISTEN_HELPER" => "1" }, 2, nil],
                "1 busy thread" => [{ busy: 1 }, {}, 10, 120], "8 busy threads" => [{ busy: 8 }, {}, 40, 250] }
      cases.flat_map do |what, (setup, env, bar, worst)|
        took = Program.open(setup, env:) { |program| Array.new(@options[:attaches]) { attach(program) } }
        [Figure.median("attach, #{what}: median", took, "ms", bar),
         *(Figure.worst("attach, #{what}: worst", took, "ms", worst) if worst)]
      end
    end

    def attach(program)
      began = Bench::Clock.wall
      took = program.ask do |port|
        port.get(*SESSION)
        Bench::Clock.wall - began
      end
      wait_for_end(program)
      took / 1e6
    end

    # The next one is to begin a session of its own, with a helper of its own.
    def wait_for_end(program)
      program.ask { |port| sleep 0.02 while JSON.parse(port.get(HELLO))["session"] }
      sleep 0.1
    end

    def stacks
      threads, depth = @options[:blocked]
      what = "stacks, #{threads} threads, #{depth} frames deep"
      Program.open({ blocked: "#{threads}:#{depth}" }, real_time: true) do |program|
        ruby = program.command("backtraces")[:ns] / 1e6
        alone, with = %w[alone with].map { |how| gaps(program, asks: how == "with") }
        took = with.flat_map(&:last)
        [Figure.median(what, took, "ms", 15),
         Figure.new("the same by Thread#backtrace, in the program, with the GVL", ruby, "ms"),
         *Figure.gaps("stacks", with.map(&:first), alone.map(&:first), 0.4)]
      end
    end

    # The longest gap, and the times of the answers.
    def gaps(program, asks:)
      Array.new(@options[:runs]) do
        program.begin("gap", 0.5)
        sleep 0.1
        took = asks ? program.ask { |port| Array.new(3) { port.time(STACKS) / 1e6 } } : []
        [program.answer[:gap_ns] / 1e6, took]
      end
    end
  end
end
