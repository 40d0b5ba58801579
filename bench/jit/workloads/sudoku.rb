# frozen_string_literal: true

# A sudoku solver in plain Ruby: integers and arrays, many short methods and blocks.

class Sudoku
  PUZZLES = [
    "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
    "4.....8.5.3..........7......2.....6.....8.4......1.......6.3.7.5..2.....1.4......"
  ].freeze
  ALL = 0b111_111_111
  ROWS = Array.new(81) { |cell| cell / 9 }.freeze
  COLUMNS = Array.new(81) { |cell| cell % 9 }.freeze
  BOXES = Array.new(81) { |cell| (cell / 27 * 3) + (cell % 9 / 3) }.freeze
  COUNTS = Array.new(512) { |bits| bits.digits(2).sum }.freeze

  def initialize(puzzle)
    @cells = Array.new(81, 0)
    @rows = Array.new(9, ALL)
    @columns = Array.new(9, ALL)
    @boxes = Array.new(9, ALL)
    puzzle.each_char.with_index { |char, cell| put(cell, 1 << (char.to_i - 1)) unless char == "." }
  end

  # @return [Boolean] whether there is a solution; it is then in the cells
  def solve
    cell = tightest
    return true unless cell

    left = candidates(cell)
    while left != 0
      bit = left & -left
      put(cell, bit)
      return true if solve

      take_back(cell, bit)
      left ^= bit
    end
    false
  end

  def to_s = @cells.map { |bit| bit.bit_length.to_s }.join

  private

  def candidates(cell) = @rows[ROWS[cell]] & @columns[COLUMNS[cell]] & @boxes[BOXES[cell]]

  # The empty cell that the fewest digits fit into.
  def tightest
    best = nil
    fewest = 10
    81.times do |cell|
      next unless @cells[cell].zero?

      count = COUNTS[candidates(cell)]
      next unless count < fewest

      best = cell
      fewest = count
      break if count < 2
    end
    best
  end

  def put(cell, bit)
    @cells[cell] = bit
    flip(cell, bit)
  end

  def take_back(cell, bit)
    @cells[cell] = 0
    flip(cell, bit)
  end

  def flip(cell, bit)
    @rows[ROWS[cell]] ^= bit
    @columns[COLUMNS[cell]] ^= bit
    @boxes[BOXES[cell]] ^= bit
  end
end

WORKLOAD = ->(scale) { (20 * scale).ceil.times { Sudoku::PUZZLES.each { |puzzle| Sudoku.new(puzzle).solve } } }
