# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/interleave"
require_relative "../support/statistics"

module Overhead
  # What something of ours adds to a call: nanoseconds of CPU time with it and without, in each session, with the
  # interpreter and with YJIT.
  module PerCall
    # By the arguments of Rperf.start; nil: there is no session.
    SESSIONS = {
      "none" => nil, "cpu" => { mode: :cpu }, "wall" => { mode: :wall }, "deferred" => { mode: :wall, defer: true },
      "requests" => { mode: :wall, measure: :requests }, "ops" => { mode: :wall, measure: :ops }
    }.freeze
    # How fast the machine is at this kind of work: a block whose `ensure` puts a fiber-local variable back.
    ANCHOR = "(a fiber-local variable)"
    VARIABLE = :__rperf_bench__
    HEADINGS = ["code", "what", "session", "alone, ns", "with rperf", "more", "quartiles"].freeze

    module_function

    # @yieldparam count [Integer] how many calls to make of what is alone, or with rperf
    # @param variants [Hash{String => Hash{Symbol => Proc}}] by name, :alone and :with
    # @return [Array<Array<String>>] the rows of a table
    def rows(variants, options, count:, sessions: SESSIONS.keys)
      calls = (count * options[:scale]).ceil
      variants = { **anchor, **variants }
      cases = variants.keys.product(sessions)
      with_each_code do |code|
        runs = Bench::Interleave.call(cases, runs: options[:runs]) do |name, session|
          in_session(session, options[:frequency]) { variants.fetch(name).transform_values { |it| time(calls, it) } }
        end
        runs.map { |(name, session), results| [code, name, session, *figures(results)] }
      end
    end

    # {ANCHOR} as a variant.
    def anchor = { ANCHOR => { alone: method(:alone), with: method(:with_variable) } }

    def only_yield = yield

    # A block so many times.
    def alone(blocks)
      number = 0
      number = only_yield { number + 1 } while number < blocks
    end

    def with_variable(blocks)
      number = 0
      number = store(:value) { number + 1 } while number < blocks
    end

    def store(value)
      before = Thread.current[VARIABLE]
      Thread.current[VARIABLE] = value
      yield
    ensure
      Thread.current[VARIABLE] = before
    end

    # What the block makes with the interpreter, and with YJIT, each in a process of its own.
    def with_each_code
      enable = { "interpreter" => -> { true }, "YJIT" => -> { defined?(RubyVM::YJIT) && RubyVM::YJIT.enable } }
      enable.flat_map { |code, turn_on| in_child { turn_on.call ? yield(code) : [] } }
    end

    def in_child
      reader, writer = IO.pipe(binmode: true)
      child = fork do
        writer.write(Marshal.dump(yield))
        writer.flush
        exit!(0)
      end
      writer.close
      Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- of this program's own child.
    ensure
      reader&.close
      Process.wait(child) if child
    end

    def in_session(session, frequency)
      settings = SESSIONS.fetch(session)
      Rperf.start(frequency:, **settings) if settings
      yield
    ensure
      Rperf.stop if settings
    end

    def time(calls, work)
      started = Bench::Clock.process_cpu
      work.call(calls)
      (Bench::Clock.process_cpu - started).fdiv(calls)
    end

    def figures(results)
      more = results.map { |result| result[:with] - result[:alone] }
      [*%i[alone with].map { |key| ns(results.map { |result| result[key] }) }, ns(more),
       Bench::Statistics.quartiles(more).map { |it| ns([it]) }.join(" to ")]
    end

    def ns(values) = format("%.0f", Bench::Statistics.median(values))
  end
end
