# frozen_string_literal: true

require_relative "clock"

module Bench
  # How long a thread that wants the GVL all the time can't get it.
  module Gap
    # How long that thread sleeps: far shorter than what is looked for.
    STEP = 0.0001

    # Does the block meanwhile.
    # @return [Integer] the longest gap, in ns
    def self.longest
      over = false
      longest = 0
      watcher = Thread.new do
        last = Clock.wall
        until over
          sleep STEP
          now = Clock.wall
          longest = now - last if now - last > longest
          last = now
        end
      end
      Thread.pass until watcher.stop?
      yield
      over = true
      watcher.join
      longest
    end
  end
end
