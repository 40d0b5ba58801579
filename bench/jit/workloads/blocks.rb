# frozen_string_literal: true

# C methods that call blocks: compiled code and C take turns every few nanoseconds.

LIST = (1..12).to_a.freeze
TABLE = LIST.to_h { |number| [number, "value #{number}"] }.freeze
TEXT = "a sample of some words to look at"

def sum_up(list) = list.inject { |sum, number| sum + number }

def longest(table) = table.max_by { |_, text| text.size }

def grouped(list) = list.group_by { |number| number % 3 }.transform_values { |group| group.sum { |number| number * 2 } }

def visited(list, table)
  seen = 0
  list.each_slice(4) { |slice| seen += slice.size }
  list.each_with_index { |number, index| seen += number - index }
  list.reverse_each { |number| seen ^= number }
  table.each { |number, text| seen += number + text.size }
  1.upto(12) { |number| seen += number }
  seen
end

def sorted(list) = list.sort_by { |number| (number * 7) % 13 }

def replaced(text) = text.gsub(/[aeiou]/) { |vowel| vowel == "a" ? "A" : vowel }

WORKLOAD = lambda do |scale|
  (12_000 * scale).ceil.times do
    sum_up(LIST)
    longest(TABLE)
    grouped(LIST)
    visited(LIST, TABLE)
    sorted(LIST)
    replaced(TEXT)
  end
end
