# frozen_string_literal: true

require_relative "per_call"

module Overhead
  # What a block with the name of an op costs.
  class Op
    BLOCKS = 100_000
    SESSIONS = %w[none wall ops].freeze
    STATEMENT = 'SELECT "users".* FROM "users" WHERE "users"."id" = $1 LIMIT $2'

    def initialize(options)
      require "rperf"
      @options = options
    end

    # @return [Array<Array<String>>] the rows of a table
    def rows
      with = { "a prepared statement" => method(:prepared), "a new value each time" => method(:unique),
               "one inside of another" => method(:nested) }
      variants = with.transform_values { |it| { alone: PerCall.method(:alone), with: it } }
      PerCall.rows(variants, @options, count: BLOCKS, sessions: SESSIONS)
    end

    private

    def prepared(blocks)
      number = 0
      number = Rperf.op(STATEMENT, kind: :sql) { number + 1 } while number < blocks
    end

    def unique(blocks)
      number = 0
      number = Rperf.op("SELECT * FROM users WHERE id = #{number}", kind: :sql) { number + 1 } while number < blocks
    end

    def nested(blocks)
      Rperf.op("a page", kind: :cache) { prepared(blocks) }
    end
  end
end
