# frozen_string_literal: true

require_relative "../support/statistics"
require_relative "durations"
require_relative "unprofiled"

module Accuracy
  # Methods whose last act is the call of a tiny one. Code without branches, returns and
  # calls of C methods has no safepoint: who samples at safepoints finds the tiny one at
  # work instead of its caller.
  #
  # Each method is called in batches, with a clock around the batch. What the tiny method
  # and the batch's loop take is known from batches of nothing else. Some of a call's cost
  # is its caller's, so the methods are long enough for it not to matter.
  class LastCalls < Unprofiled
    LIST = (0..25).to_a.freeze
    # None of them allocates: a collection would come in one of them and be due to all.
    BODIES = {
      "straight_line" => (1..2000).map { |step| "number = (number + #{step}) & 1023" }.join("\n"),
      "arithmetic" => (1..500).map { |step| "number = ((number * #{step}) + 1) & 1023" }.join("\n"),
      "counting" => "step = 0\nwhile step < 600\nnumber = (number + step) & 1023\nstep += 1\nend",
      "c_calls" => (1..25).map { |step| "number += Accuracy::LastCalls::LIST.index(#{step})" }.join("\n"),
      "blocks" => Array.new(5) { "Accuracy::LastCalls::LIST.each { |it| number = (number + it) & 1023 }" }.join("\n"),
      "variables" => (1..150).map { |step| "@it_#{step % 6} = number\nnumber = @it_#{step % 6} + 1" }.join("\n")
    }.freeze
    TINY = "tiny"
    CALLS = 200
    TRIES = 50

    METHOD = <<~RUBY
      def self.%<name>s(number)
        %<body>s
      end
    RUBY
    BATCH = <<~RUBY
      def self.batch_of_%<name>s(calls)
        number = 0
        while calls > 0
          number = %<call>s
          calls -= 1
        end
      end
    RUBY
    private_constant :METHOD, :BATCH

    # @param names [Array<String>] keys of BODIES
    def initialize(names)
      super()
      @bodies = names
    end

    private

    def names = [*@bodies, TINY]

    def prepare
      @code = Module.new
      Accuracy.const_set(:LastCallsCode, @code)
      define(METHOD, name: TINY, body: "(number + 1) & 1023")
      define(BATCH, name: "nothing", call: "number")
      define(BATCH, name: "only_tiny", call: "#{TINY}(number)")
      @bodies.each do |name|
        define(METHOD, name:, body: "#{BODIES.fetch(name)}\n#{TINY}(number & 1023)")
        define(BATCH, name:, call: "#{name}(number)")
      end
      @nothing, tiny = %w[nothing only_tiny].map { |name| Bench::Statistics.median(Array.new(TRIES) { batch(name) }) }
      @tiny = tiny - @nothing
    end

    def define(code, **parts) = @code.module_eval(format(code, **parts), __FILE__, __LINE__)

    def round(times)
      @bodies.shuffle(random: @measurement.random).each { |name| times[name] += batch(name) }
    end

    # @return [Integer] nanoseconds
    def batch(name)
      name = :"batch_of_#{name}"
      began = now
      @code.public_send(name, CALLS)
      now - began
    end

    def corrected(times, rounds)
      times.transform_values { |time| time - ((@nothing + @tiny) * rounds) }
           .merge(TINY => @tiny * rounds * @bodies.size)
    end
  end
end
