# frozen_string_literal: true

module Bench
  # Robust figures: one disturbed run must not move them.
  module Statistics
    def self.median(values) = quantile(values, 0.5)

    # Linear between the two nearest values.
    def self.quantile(values, share)
      sorted = values.sort
      position = share * (sorted.size - 1)
      low = sorted[position.floor]
      low + ((sorted[position.ceil] - low) * (position % 1))
    end

    def self.quartiles(values) = [0.25, 0.75].map { |share| quantile(values, share) }

    # What has the median of all possible values in 95 of 100 cases, however they are distributed.
    def self.interval_of_median(values)
      sorted = values.sort
      beside = 0.98 * Math.sqrt(sorted.size)
      low = (((sorted.size - 1) / 2.0) - beside).floor.clamp(0, sorted.size - 1)
      [sorted[low], sorted[sorted.size - 1 - low]]
    end

    # Run by run, so that what disturbs a whole round cancels out.
    def self.ratios(runs, base) = runs.zip(base).map { |run, other| run.fdiv(other) }
  end
end
