# frozen_string_literal: true

require_relative "processes"

module Specs
  # What a signal does that ends the run: all processes of RSpec end before it does.
  module Interruption
    SIGNALS = %w[INT TERM HUP].freeze

    module_function

    # The first signal counts. It ends this process in the end, as whoever has sent it expects. One that is ignored, as
    # by nohup, stays so.
    def trap
      received = Queue.new
      SIGNALS.each do |signal|
        previous = Signal.trap(signal) { received << signal }
        Signal.trap(signal, previous) if previous == "IGNORE"
      end
      Thread.new { end_by(received.pop) }
    end

    def end_by(signal)
      warn("interrupted by SIG#{signal}: the specs that run are ended")
      Processes.end_all
      Signal.trap(signal, "SYSTEM_DEFAULT")
      Process.kill(signal, Process.pid)
    end
  end
end
