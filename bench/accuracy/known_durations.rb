# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/shares"
require_relative "../support/native"
require_relative "scenario"

module Accuracy
  # Methods of known durations, 5 to 100 ms, in random order. The figure is the
  # mean error of their times, in percent.
  class KnownDurations < Scenario
    MILLISECONDS = [5, 10, 15, 20, 30, 50, 75, 100].freeze
    BODIES = {
      "ruby_busy" => "KnownDurations.spin(%d)",
      "c_busy" => "BenchNative.c_busy(%d)",
      "c_sleep_gvl" => "BenchNative.c_sleep_gvl(%d)",
      "c_sleep_nogvl" => "BenchNative.c_sleep_nogvl(%d)"
    }.freeze
    SLEEPS = /\Ac_sleep/

    # Pure Ruby, with a look at the clock now and then.
    def self.spin(duration_ns)
      ends = Bench::Clock.wall + duration_ns
      while Bench::Clock.wall < ends
        step = 0
        step += 1 while step < 500
      end
    end

    # @param kinds [Array<String>] keys of BODIES, dealt out to the durations
    def initialize(kinds)
      super()
      @kinds = kinds
      @names = MILLISECONDS.each_with_index.map { |ms, index| "#{kinds[index % kinds.size]}_#{ms}ms" }
    end

    def native? = @kinds.any? { |kind| kind.start_with?("c_") }

    # @return [Hash{String => Float}] the figure
    def call(measurement)
      Bench::Native.load if native?
      subject = methods_of_known_duration
      calls = @names.map(&:to_sym) * [(measurement.seconds * 1000 / MILLISECONDS.sum).round, 1].max
      calls.shuffle!(random: measurement.random)
      profile = measurement.profile do
        calls.each { |name| measurement.time(name.name) { subject.public_send(name) } }
      end
      { "mean error %" => mean_error(measurement, Bench::Shares.by_method(profile, @names)) }
    end

    private

    # A method for every name, so that the profile tells them apart.
    def methods_of_known_duration
      definitions = @names.zip(MILLISECONDS).map do |name, ms|
        "def self.#{name} = #{format(BODIES.fetch(name[/\A(.+)_\d+ms\z/, 1]), ms * 1_000_000)}"
      end
      Module.new.tap { |it| Accuracy.const_set(:Known, it).module_eval(definitions.join("\n"), __FILE__, 1) }
    end

    # Sleeping takes no CPU time: what a cpu profile has of it is set against how
    # long it took.
    def mean_error(measurement, measured)
      errors = @names.map do |name|
        base = measurement.mode == :cpu && name.match?(SLEEPS) ? measurement.elapsed[name] : measurement.truth[name]
        (measured[name] - measurement.truth[name]).abs.fdiv(base)
      end
      errors.sum / errors.size * 100
    end
  end
end
