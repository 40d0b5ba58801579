# frozen_string_literal: true

# Runs a program, and prints where the objects that are still alive at its end were made, and of
# which class they are: `ruby alive.rb feed.rb`. It is slow, and needs no rperf.

require "objspace"

ObjectSpace.trace_object_allocations_start
load ARGV.fetch(0)
GC.start
places = Hash.new(0)
ObjectSpace.each_object do |object|
  line = ObjectSpace.allocation_sourceline(object)
  places["#{ObjectSpace.allocation_sourcefile(object)}:#{line}  #{object.class}"] += 1 if line
end
places.max_by(6) { |_, count| count }.each { |place, count| puts "#{count.to_s.rjust(9)}  #{place}" }
