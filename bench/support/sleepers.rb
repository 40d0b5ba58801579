# frozen_string_literal: true

module Bench
  # Threads that sleep 1 ms and work 5 us, again and again, 40 frames deep, as those of a
  # server with many connections do. They are there before it is measured: what making them
  # takes is not counted.
  module Sleepers
    PAUSE = 0.001
    DEPTH = 40
    # Takes about 5 us.
    STEPS = 200

    # @param threads [Integer]
    # @param times [Integer] how often each sleeps at scale 1.0
    # @return [Proc] to call with a scale
    def self.start(threads, times)
      orders = Array.new(threads) { Queue.new }
      ended = Queue.new
      orders.each { |own| Thread.new { descend(DEPTH) { serve(own, ended) } } }
      lambda do |scale|
        orders.each { |own| own << (times * scale).ceil }
        threads.times { ended.pop }
      end
    end

    def self.descend(depth, &) = depth.zero? ? yield : descend(depth - 1, &)

    def self.serve(orders, ended)
      while (times = orders.pop)
        times.times do
          sleep PAUSE
          work
        end
        ended << true
      end
    end

    def self.work
      step = 0
      step += 1 while step < STEPS
    end
    private_class_method :descend, :serve, :work
  end
end
