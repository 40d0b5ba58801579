# frozen_string_literal: true

module Bench
  # Prints rows under headings, texts to the left and numbers to the right.
  module Table
    # @param headings [Array<String>] with the unit in the heading
    # @param rows [Array<Array<String>>] "-" where there is no figure
    def self.print(headings, rows, out: $stdout)
      widths = [headings, *rows].transpose.map { |column| column.map(&:size).max }
      text = headings.each_index.map { |index| rows.none? { |row| number?(row[index]) } }
      [headings, widths.map { |width| "-" * width }, *rows].each do |row|
        cells = row.each_with_index.map do |cell, index|
          text[index] ? cell.ljust(widths[index]) : cell.rjust(widths[index])
        end
        out.puts cells.join("  ").rstrip
      end
      out.puts
    end

    def self.number?(cell) = cell.match?(/\A[-+]?[\d.]+\z/)
    private_class_method :number?
  end
end
