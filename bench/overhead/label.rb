# frozen_string_literal: true

require_relative "per_call"

module Overhead
  # What a block with a label costs.
  class Label
    BLOCKS = 100_000
    SESSIONS = %w[none cpu wall].freeze

    def initialize(options)
      require "rperf"
      @options = options
    end

    # @return [Array<Array<String>>] the rows of a table
    def rows
      with = { "the same label" => method(:same), "a String" => method(:text),
               "two, inside of another" => method(:nested), "a new value each time" => method(:unique) }
      variants = with.transform_values { |it| { alone: PerCall.method(:alone), with: it } }
      PerCall.rows(variants, @options, count: BLOCKS, sessions: SESSIONS)
    end

    private

    def same(blocks)
      number = 0
      number = Rperf.label(phase: :render) { number + 1 } while number < blocks
    end

    def text(blocks)
      value = "GET /users/:id"
      number = 0
      number = Rperf.label(endpoint: value) { number + 1 } while number < blocks
    end

    def nested(blocks)
      Rperf.label(endpoint: "GET /users/:id") do
        number = 0
        number = Rperf.label(phase: :query, table: :users) { number + 1 } while number < blocks
      end
    end

    def unique(blocks)
      number = 0
      number = Rperf.label(request: number) { number + 1 } while number < blocks
    end
  end
end
