# frozen_string_literal: true

class Shop
  # How often products were looked at in a month.
  class Reports
    def initialize(visits)
      @visits = visits
      @rows = {}
    end

    def page(month)
      @rows[month] = rows(month)
      counts = @rows[month].group_by { |row| row[1] }.transform_values(&:size)
      best = counts.max_by(10) { |_, count| count }
      "<ol>#{best.map { |id, count| "<li>#{id}: #{count}</li>" }.join}</ol>"
    end

    private

    def rows(month)
      @visits[month % 12].lines.map { |line| line.chomp.split(",") }
    end
  end
end
