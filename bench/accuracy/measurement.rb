# frozen_string_literal: true

require "rperf"
require_relative "../support/clock"
require_relative "../support/shares"

module Accuracy
  # One run of a scenario: profiles a block and keeps what really happened in it.
  class Measurement
    attr_reader :mode, :seconds, :random, :truth, :elapsed, :total_truth

    # @param mode [Symbol] :cpu or :wall
    def initialize(mode:, frequency:, seconds:, seed:)
      @mode = mode
      @frequency = frequency
      @seconds = seconds
      @random = Random.new(seed)
      @truth = Hash.new(0)
      @elapsed = Hash.new(0)
    end

    # The clock of what the mode measures.
    def now = @mode == :cpu ? Bench::Clock.thread_cpu : Bench::Clock.wall

    # Profiles the block.
    # @return [Hash] the profile
    def profile
      Rperf.start(mode: @mode, frequency: @frequency) do
        wall = Bench::Clock.wall
        began = now
        yield self
        @total_truth = now - began
        @total_elapsed = Bench::Clock.wall - wall
      end
    end

    # Notes what the block takes as the truth for `name`.
    def time(name)
      wall = Bench::Clock.wall
      began = now
      yield
      @truth[name] += now - began
      @elapsed[name] += Bench::Clock.wall - wall
    end

    # Repeats the block until the time is over.
    def until_over
      ends = Bench::Clock.wall + (@seconds * 1e9)
      yield while Bench::Clock.wall < ends
    end

    # The figure of scenarios that are about shares of the run: the largest difference
    # to the truth, in points. In both modes they are shares of the time elapsed.
    def points(profile, names)
      measured = Bench::Shares.by_method(profile, names)
      names.map { |name| (measured[name] - @truth[name]).abs * 100.0 / @total_elapsed }.max
    end
  end
end
