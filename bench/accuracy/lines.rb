# frozen_string_literal: true

require "tmpdir"
require_relative "../support/engines"
require_relative "../support/pprof"
require_relative "../support/shares"
require_relative "durations"
require_relative "loops/c_calls"
require_relative "loops/ruby_loop"
require_relative "scenario"

module Accuracy
  # A method of five lines, whose shares of the method's time are known: some 450, 300,
  # 200, 100 and 50 us, every time longer or shorter by up to a half. The figure is by
  # how many points the worst line's share is off; at most 3 are good (samples drawn by
  # chance come to 1.1 at 1000 Hz in 4 s). The lines come from a pprof file.
  #
  # Each line ends with a reading of the clock, whose second half counts as the next
  # line's: some 20 ns. If the lines are calls of C methods, compiled code has no safepoint
  # from the first line to the last.
  class Lines < Scenario
    FILE = "five_lines.rb"
    FIRST_LINE = 2
    MICROSECONDS = [450, 300, 200, 100, 50].freeze
    FACTORS = [0.5, 0.75, 1.0, 1.25, 1.5].freeze
    WARM_UP = 100
    NAME = "a string of some length, long enough to be on the heap"
    OTHER = "a string of some length, long enough to be on the heaP"
    TABLE = { NAME => 1, OTHER => 2 }.freeze

    # The C method of each line: a key of CCalls::KINDS.
    C_METHODS = %w[sort count match pow pack].freeze
    # What compiled code has C functions do without a frame of their own: to look a String up, compare two, concatenate,
    # and make an Array and a Float.
    OPERATIONS = ["table[name]", "name == other", '"\#{name}\#{other}"', "[step, name]", "1.5e300 * step"].freeze
    CODE = {
      loops: Array.new(5) { |line| "limit = inputs[#{line}]; step = 0; step += 1 while step < limit" },
      operations: OPERATIONS.each_with_index.map do |code, line|
        "limit = inputs[#{line}]; step = 0; while step < limit; #{code}; step += 1; end"
      end,
      ruby_calls: Array.new(5) do |line|
        "left = inputs[#{line}]; while left > 0; Loops::RubyLoop.count_up; left -= 1; end"
      end,
      c_calls: C_METHODS.each_with_index.map do |name, line|
        Loops::CCalls::KINDS.fetch(name).call.sub("input", "inputs[#{line}]")
      end
    }.freeze

    # @param kind [Symbol] what the lines are made of: a key of CODE
    def initialize(kind)
      super()
      @kind = kind
    end

    def engines = Bench::Engines::NAMES
    def frequencies = [1000]

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      define_five_lines
      @inputs = inputs
      start_over(measurement)
      WARM_UP.times { run(measurement) }
      start_over(measurement)
      profile = measurement.profile { measurement.until_over { run(measurement) } }
      truth = @durations.each_with_index.to_h { |it, line| ["line #{FIRST_LINE + line}", it.sum] }
      measured = by_line(profile, measurement.mode.name)
      measurement.details(truth, measured)
      { "worst line, points" => Bench::Shares.points(truth, measured).values.map(&:abs).max }
    end

    private

    def define_five_lines
      lines = CODE.fetch(@kind).each_with_index.map do |code, line|
        "#{code}; times[#{line}] = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)"
      end
      singleton_class.class_eval(["def five_lines(inputs, times, table, name, other)", *lines, "end"].join("\n"), FILE)
    end

    def start_over(measurement)
      @durations = Array.new(5) { Durations.new(measurement.mode) }
    end

    def run(measurement)
      inputs = @inputs.map { |some| some.sample(random: measurement.random) }
      times = Array.new(5, 0)
      last = Bench::Clock.wall
      five_lines(inputs, times, TABLE, NAME, OTHER)
      times.each_with_index do |time, line|
        @durations[line].add(time - last)
        last = time
      end
    end

    # @return [Array<Array>] for each line, what makes it take as long as it should
    def inputs
      calls_in_ms = Loops::RubyLoop.calls_for(1_000_000)
      MICROSECONDS.each_with_index.map do |length, line|
        FACTORS.map do |factor|
          calls = calls_in_ms * length * factor / 1000
          case @kind
          when :loops then (calls * Loops::RubyLoop::STEPS).round
          when :operations then (calls * Loops::RubyLoop::STEPS / 5).round
          when :ruby_calls then calls.round
          when :c_calls then argument(Loops::CCalls::KINDS.fetch(C_METHODS[line]), length * factor)
          end
        end
      end
    end

    def argument(kind, microseconds) = kind.input.call((kind.sizes.last * microseconds / Loops::CCalls::LONG).round)

    # @return [Hash{String => Integer}] nanoseconds by line
    def by_line(profile, type)
      samples = Dir.mktmpdir do |directory|
        path = File.join(directory, "profile.pb.gz")
        Rperf.save(path, profile)
        Bench::Pprof.read(path).samples
      end
      samples.each_with_object(Hash.new(0)) do |sample, sums|
        frame = sample.frames.find { |it| File.basename(it.file) == FILE }
        sums["line #{frame.line}"] += sample.values.fetch(type) if frame
      end
    end
  end
end
