# frozen_string_literal: true

class News
  # How often each article was read.
  class Statistics
    VISITS = 600_000
    # For a look by hand.
    CHECKED = 1_000

    def page
      visits = log
      @checked = Array.new(VISITS / CHECKED) { |n| visits[n * CHECKED] }
      counts = visits.each_with_object(Hash.new(0)) { |visit, all| all[visit.to_i % 100] += 1 }
      counts.map { |article, count| "<li>#{article}: #{count}</li>" }.join
    end

    private

    # All visits of the day.
    def log = Array.new(VISITS, &:to_s)
  end
end
