# frozen_string_literal: true

# Parts of a program whose shares of its time are known: each is timed alone before any call is traced. They are all
# that distorts a trace: long work without calls, in Ruby and in C, and short calls of each kind by the million.
module Parts
  RANDOM = Random.new(1)
  MANY = Array.new(600_000) { RANDOM.rand(1 << 30) }
  SOME = Array.new(300) { RANDOM.rand(1 << 30) }
  TEXT = "ab" * 2_000_000

  module_function

  def tiny(number) = number

  def long_c = MANY.sort

  def long_ruby
    turns = sum = 0
    while turns < 6_000_000
      sum = turns if turns == 7
      turns += 1
    end
    sum
  end

  def short_methods
    turns = 0
    while turns < 400_000
      tiny(1); tiny(2); tiny(3); tiny(4); tiny(5); tiny(6); tiny(7); tiny(8); tiny(9); tiny(10) # rubocop:disable Style/Semicolon
      turns += 1
    end
  end

  def short_blocks = 4_000_000.times { |it| it }

  def operators
    turns = 0
    number = 1.5
    turns += 1 while turns < 3_000_000 && !number.nan?
  end

  def middling = 2_000.times { SOME.sort }
  def blocks_of_c = 60.times { TEXT.count("b") }

  ALL = %i[long_c long_ruby short_methods short_blocks operators middling blocks_of_c].freeze

  def run = ALL.each { |name| public_send(name) }
end
