# frozen_string_literal: true

require_relative "../support/child"
require_relative "../support/clock"

module Jit
  # Pairs of whole processes: a program with and without a profiler, from its start to its end.
  class Processes
    LOADED = "loaded"
    PROGRAM = File.expand_path("short_program.rb", __dir__)

    # @param seconds [Float] how long the program is to run
    # @param place [Hash] engine: and cpu:, as Bench::Child.command takes them
    def initialize(seconds:, frequency:, place:)
      @frequency = frequency
      @place = place
      @scale = 1.0
      2.times { @scale *= seconds * 1e9 / measure("off")[:wall_ns] }
    end

    # @return [Hash{Symbol => Array<Hash>}] the pairs by variant
    def run(variants, rounds)
      results = variants.to_h { |name| [name.to_sym, []] }
      rounds.times do
        variants.shuffle.each { |name| results[name.to_sym] << pair(name) }
        $stderr.print(".") if $stderr.tty?
      end
      warn("") if $stderr.tty?
      results
    end

    private

    def pair(variant)
      %i[off on].shuffle.to_h { |side| [side, measure(side == :on ? variant : "off")] }
    end

    def measure(variant)
      cpu = cpu_seconds
      wall = Bench::Clock.wall
      collections = Bench::Child.json(PROGRAM, variant, @frequency, @scale, **@place)
      { wall_ns: Bench::Clock.wall - wall, cpu_ns: (cpu_seconds - cpu) * 1e9, collections: }
    end

    # Of all children that have ended.
    def cpu_seconds
      times = Process.times
      times.cutime + times.cstime
    end
  end
end
