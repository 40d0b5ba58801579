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
  end
end
