# frozen_string_literal: true

# A database for examples. Its tables are Arrays of Hashes, and it answers as late as a real one would: threads that
# wait for it don't have the GVL.
module Teeny
  # What SELECT statements can be asked of.
  class Database
    STATEMENT = /\ASELECT \* FROM (?<table>\w+) WHERE (?<column>\w+) (?<operator>=|LIKE) \?\z/
    # How long it takes to be asked and to answer, and to look at a row of a table, in s.
    ROUND_TRIP = 0.001
    ROW = 0.0001

    # @param tables [Hash{String => Array<Hash>}] each row has the same keys
    # @param indexes [Hash{String => Array<Symbol>}] the columns of each table that it finds rows by
    def initialize(tables, indexes)
      @tables = tables
      @indexes = indexes.to_h do |table, columns|
        [table, columns.to_h { |column| [column, tables.fetch(table).group_by { |row| row[column] }] }]
      end
      @answers = IO.pipe
    end

    # @param sql [String] a statement with a `?` in the place of the value
    # @return [Array<Hash>] the rows
    def query(sql, value)
      statement = STATEMENT.match(sql) or raise ArgumentError, "no statement: #{sql}"
      index = @indexes.dig(statement[:table], statement[:column].to_sym) if statement[:operator] == "="
      rows = @tables.fetch(statement[:table])
      named(sql) { answer_after(index ? ROUND_TRIP : ROUND_TRIP + (ROW * rows.size)) }
      index ? index.fetch(value, []) : select(rows, statement, value)
    end

    private

    # As a driver does that names its statements in profiles.
    def named(sql, &) = defined?(Rperf) ? Rperf.op(sql, kind: :sql, &) : yield

    def answer_after(seconds) = @answers.first.wait_readable(seconds)

    def select(rows, statement, value)
      column = statement[:column].to_sym
      part = value.to_s.delete("%")
      rows.select { |row| statement[:operator] == "=" ? row[column] == value : row[column].include?(part) }
    end
  end
end
