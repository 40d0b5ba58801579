# frozen_string_literal: true

# Two threads hand a token to and fro through queues, each 50 frames deep: a GVL
# release and a reacquire for every hand-over, and hardly any work between them.
# How long it takes depends much on which CPUs the system puts the threads on.

def descend(depth, &) = depth.zero? ? yield : descend(depth - 1, &)

def hand_over(from, to, times)
  descend(50) { times.times { to << from.pop } }
end

WORKLOAD = lambda do |scale|
  there = Queue.new
  back = Queue.new
  times = (100_000 * scale).ceil
  partner = Thread.new { hand_over(there, back, times) }
  there << :token
  hand_over(back, there, times - 1)
  back.pop
  partner.join
end
