# frozen_string_literal: true

# Makes garbage, and keeps a heap that the collector has to walk through again
# and again: both kinds of GC work at once.
#
#   bin/rperf stat ruby examples/gc.rb
#
# What to look for: GC marking (the kept objects are visited) and GC sweeping
# (the dropped ones are freed) take about half of the time, and the GC line counts
# the runs. In a profile (`bin/rperf record -p ruby examples/gc.rb`)
# [GC marking] and [GC sweeping] stand below the method that was allocating when
# the collector started. Set KEEP=0 and marking nearly goes away.

Entry = Struct.new(:key, :words, :parent)

def remember(kept, number)
  kept << Entry.new("key-#{number}", ["w#{number}", number.to_s(2)], kept.last)
end

# Short-lived strings and arrays; nothing of them is kept.
def churn(number)
  "line #{number} of a report".split.map(&:capitalize).join("-").bytes.each_slice(4).sum(&:first)
end

kept = []
Integer(ENV.fetch("KEEP", "100000")).times { |number| remember(kept, number) }
checksum = 0
60_000.times { |number| checksum += churn(number) }
8.times { GC.start }
puts "#{kept.size} entries kept, checksum #{checksum}, #{GC.count} collections"
