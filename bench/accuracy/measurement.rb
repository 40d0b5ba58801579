# frozen_string_literal: true

require "rperf"
require_relative "../support/clock"
require_relative "../support/shares"
require_relative "../support/table"

module Accuracy
  # One run of a scenario: profiles a block, and keeps the true times.
  class Measurement
    attr_reader :mode, :seconds, :random, :truth, :elapsed, :total_truth, :total_elapsed

    # @param mode [Symbol] :cpu or :wall
    # @param capture [Symbol, nil] as Rperf.start takes it; nil: its default
    # @param details [Boolean] whether to print what each method took
    def initialize(mode:, frequency:, seconds:, seed:, capture: nil, details: false)
      @mode = mode
      @options = { mode:, frequency:, capture: }.compact
      @print_details = details
      @seconds = seconds
      @random = Random.new(seed)
      @truth = Hash.new(0)
      @elapsed = Hash.new(0)
    end

    # The clock of the mode.
    def now = @mode == :cpu ? Bench::Clock.thread_cpu : Bench::Clock.wall

    # Profiles the block.
    # @return [Hash] the profile
    def profile
      Rperf.start(**@options) do
        wall = Bench::Clock.wall
        began = now
        yield self
        @total_truth = now - began
        @total_elapsed = Bench::Clock.wall - wall
      end
    end

    # Notes the block's time as the truth for `name`.
    def time(name)
      wall = Bench::Clock.wall
      began = now
      yield
      @truth[name] += now - began
      @elapsed[name] += Bench::Clock.wall - wall
    end

    # Repeats the block until the time is over.
    def until_over(seconds = @seconds)
      ends = Bench::Clock.wall + (seconds * 1e9)
      yield while Bench::Clock.wall < ends
    end

    # The figure of scenarios that are about shares of the run: the largest difference
    # to the truth, in points. In both modes they are shares of the time elapsed.
    def points(profile, names)
      measured = Bench::Shares.by_method(profile, names)
      names.map { |name| (measured[name] - @truth[name]).abs * 100.0 / @total_elapsed }.max
    end

    # Prints shares, if wanted.
    # @param truth [Hash{String => Numeric}] nanoseconds by name
    # @param measured [Hash{String => Numeric}] likewise
    # @param calls [Hash{String => Integer}] where known
    def details(truth, measured, calls = {})
      return unless @print_details

      rows = Bench::Shares.points(truth, measured).map do |name, points|
        share = truth.fetch(name, 0) * 100.0 / truth.values.sum
        each = calls.key?(name) ? format("%.1f", truth[name] / 1000.0 / calls[name]) : "-"
        [name, each, format("%.2f", share), format("%.2f", share + points), format("%+.2f", points)]
      end
      Bench::Table.print(["name", "us a call", "truth %", "measured %", "points"], rows, out: $stderr)
    end
  end
end
