# frozen_string_literal: true

# A new thread for every small task, a few alive at a time: what is done once per
# thread counts here.

def task(number) = 200.times.sum { |step| (number * step) % 7 }

WORKLOAD = lambda do |scale|
  (1800 * scale).ceil.times do |batch|
    Array.new(8) { |index| Thread.new { task(batch + index) } }.each(&:join)
  end
end
