# frozen_string_literal: true

require_relative "../support/statistics"
require_relative "../support/table"

module Live
  # A figure beside its bar: what rperf promises of itself. Twice the bar is a failure. A figure that is known as an
  # interval is beyond the bar if all of the interval is.
  class Figure
    HEADINGS = ["what", "figure", "unit", "spread", "bar", ""].freeze

    # The median of ratios, which differ from 1 by what something costs; beside it, where it is with 95 %.
    def self.ratio(what, ratios, bar)
      low, high = Bench::Statistics.median_interval(ratios)
      new(what, Bench::Statistics.median(ratios), "ratio", bar:, base: 1.0, low:, spread: spread(ratios, low, high))
    end

    # The median of values; their quartiles are beside it.
    def self.median(what, values, unit, bar = nil)
      new(what, Bench::Statistics.median(values), unit, bar:,
                                                        spread: spread(values, *Bench::Statistics.quartiles(values)))
    end

    # The value below which 99 of 100 are; the worst is beside it.
    def self.p99(what, values, unit, bar = nil)
      new(what, Bench::Statistics.quantile(values, 0.99), unit, bar:, spread: "worst #{number(values.max)}")
    end

    # How long a thread that sleeps 0.1 ms at a time can't go on, meanwhile and without it. Where the program can have
    # real-time priority, waits for a CPU hardly count.
    def self.gaps(what, meanwhile, without, bar)
      more = meanwhile.zip(without).map { |long, short| long - short }
      [median("#{what}: longest time without the GVL", meanwhile, "ms"),
       median("#{what}: the same, nobody asks", without, "ms"), median("#{what}: longer by", more, "ms", bar)]
    end

    def self.worst(what, values, unit, bar = nil) = new(what, values.max, unit, bar:)

    def self.number(value)
      return format("%d", value) if value.is_a?(Integer) || value.abs >= 1000

      format(value.abs < 10 ? "%.3f" : "%.1f", value)
    end

    def self.spread(values, low, high) = values.size > 1 ? "#{number(low)} to #{number(high)}" : "-"
    private_class_method :spread

    # @param base [Numeric] the value of nothing that costs
    # @param low [Numeric] the least that the value may be
    def initialize(what, value, unit, bar: nil, base: 0, low: value, spread: "-")
      @what = what
      @value = value
      @unit = unit
      @bar = bar
      @base = base
      @low = low
      @spread = spread
    end

    # What a bar allows, beyond which it is missed.
    def met? = @bar.nil? || @value <= @bar

    def twice? = !@bar.nil? && @low - @base > 2 * (@bar - @base)

    def row = [@what, Figure.number(@value), @unit, @spread, @bar ? Figure.number(@bar) : "-", verdict]

    def to_s = "#{@what} (#{Figure.number(@value)} #{@unit})"

    private

    def verdict
      return "" unless @bar

      return "met" if met?
      return "can't be told" if @low <= @bar

      "missed#{", by more than the bar" if twice?}"
    end
  end
end
