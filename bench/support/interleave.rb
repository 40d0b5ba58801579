# frozen_string_literal: true

module Bench
  # Compares variants fairly on a noisy machine: one run of each in turn, rotating
  # who goes first, so that all of them meet the same disturbances.
  module Interleave
    # Yields each variant in turn; a warm-up round is thrown away.
    # @return [Hash{Object => Array}] what the block returned, by variant, in order of rounds
    def self.call(variants, runs:, warm_up: true, &block)
      variants.each(&block) if warm_up
      results = variants.to_h { |variant| [variant, []] }
      runs.times do |round|
        variants.rotate(round).each { |variant| results[variant] << yield(variant) }
        $stderr.print(".") if $stderr.tty?
      end
      warn("") if $stderr.tty?
      results
    end
  end
end
