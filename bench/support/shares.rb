# frozen_string_literal: true

module Bench
  # Reads shares of time out of the Hash that Rperf.stop returns.
  module Shares
    SYNTHETIC = ["[GVL blocked]", "[GVL wait]", "[GC marking]", "[GC sweeping]"].freeze

    # A sample belongs to the deepest of the methods that is in its stack.
    # @param names [Array<String>] method names, without their class
    # @return [Hash{String => Integer}] nanoseconds by name; "other" for the rest
    def self.by_method(profile, names)
      sums = names.to_h { |name| [name, 0] }.merge("other" => 0)
      profile[:samples].each do |frames, weight|
        owner = frames.lazy.map { |_, label| label[/[#.](\w+)\z/, 1] }.find { |name| sums.key?(name) }
        sums[owner || "other"] += weight
      end
      sums
    end

    # @return [Array(Hash, Hash)] the profile's samples without the GVL, and the others
    def self.off_gvl(profile)
      parts = profile[:samples].partition { |frames, _| SYNTHETIC.first(2).include?(frames.first&.last) }
      parts.map { |samples| { samples: } }
    end

    # @return [Integer] nanoseconds in collections
    def self.collecting(profile)
      profile[:samples].sum { |frames, weight| SYNTHETIC.last(2).include?(frames.first&.last) ? weight : 0 }
    end

    # @return [Hash{String => Float}] by how many points each share is off
    def self.points(truth, measured)
      truth_total = truth.values.sum.to_f
      measured_total = measured.values.sum.to_f
      (truth.keys | measured.keys).to_h do |name|
        [name, ((measured.fetch(name, 0) / measured_total) - (truth.fetch(name, 0) / truth_total)) * 100]
      end
    end

    # By how much each share would be off on average if the samples were nothing but a draw of as many instants,
    # each with the right stack. The mean deviation of a normal distribution is 0.8 of its standard deviation; the
    # samples' weights, 0.5 to 1.5 intervals each, add to the variance of a draw.
    # @return [Hash{String => Float}] points
    def self.by_chance(truth, samples)
      total = truth.values.sum.to_f
      truth.transform_values do |time|
        share = (time / total).clamp(0, 1)
        Math.sqrt(2 / Math::PI * share * (1 - share) * (1 + (1 / 12.0)) / samples) * 100
      end
    end

    # Half the sum of the differences of two sets of shares: the part of all time
    # that the profile puts in the wrong place, in points.
    def self.misplaced(truth, measured) = points(truth, measured).values.sum(&:abs) / 2
  end
end
