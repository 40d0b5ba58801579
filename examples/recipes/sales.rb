# frozen_string_literal: true

# Adds up sales by month. Sales#add parses the date of each line, although most dates come again
# and again. With --cache it parses each date once.

require "date"

# Sums by month.
class Sales
  def initialize(cache:)
    @dates = cache ? Hash.new { |dates, text| dates[text] = Date.parse(text) } : nil
    @sums = Hash.new(0)
  end

  def add(line)
    date, amount = line.split(",")
    @sums[month(date)] += Integer(amount)
  end

  def table = @sums.sort.map { |month, sum| "#{month}  #{sum}" }

  private

  def month(text) = date(text).strftime("%Y-%m")

  def date(text) = @dates ? @dates[text] : Date.parse(text)
end

lines = Array.new(150_000) { |number| "#{(number % 28) + 1} Mar #{2020 + (number % 5)},#{number % 97}" }
sales = Sales.new(cache: ARGV.include?("--cache"))
lines.each { |line| sales.add(line) }
puts sales.table
