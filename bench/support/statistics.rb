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

    # Where the median of all such values is, with a probability of 95 %: between two of these values, by the binomial
    # distribution of how many are below it (David and Nagaraja, Order Statistics, 7.1).
    def self.median_interval(values)
      sorted = values.sort
      middle = (sorted.size - 1) / 2.0
      reach = 0.98 * Math.sqrt(sorted.size)
      [sorted[[(middle - reach).floor, 0].max], sorted[[(middle + reach).ceil, sorted.size - 1].min]]
    end

    # Run by run, so that what disturbs a whole round cancels out.
    def self.ratios(runs, base) = runs.zip(base).map { |run, other| run.fdiv(other) }
  end
end
