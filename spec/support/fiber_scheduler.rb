# frozen_string_literal: true

# A Fiber scheduler that knows sleep and blocking, and runs on the thread that it is set on.
class FiberScheduler
  # The exception that a fiber gets in place of its next turn.
  Interruption = Struct.new(:fiber, :exception) do
    def resume = fiber.raise(exception)
  end

  # Runs the block with a scheduler, in a thread of its own, until all of its fibers have ended.
  def self.run(&block)
    Thread.new do
      Fiber.set_scheduler(new)
      block.call
    end.join
  end

  def initialize
    @sleeping = {}
    @ready = Queue.new
    # Nothing else may refer to such a fiber.
    @blocked = {}.compare_by_identity
  end

  def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)

  def kernel_sleep(duration = nil)
    @sleeping[Fiber.current] = now + duration if duration
    Fiber.yield
  end

  def block(_blocker, timeout = nil)
    @blocked[Fiber.current] = true
    kernel_sleep(timeout)
    true
  ensure
    @blocked.delete(Fiber.current)
    @sleeping.delete(Fiber.current)
  end

  def unblock(_blocker, fiber) = @ready << fiber

  # Ruby 4.0 calls it when somebody closes the IO that the fiber waits for.
  def fiber_interrupt(fiber, exception) = @ready << Interruption.new(fiber, exception)

  def io_wait(io, events, timeout)
    # IO#wait_readable would come here again.
    IO.select([io], nil, nil, timeout) # rubocop:disable Lint/IncompatibleIoSelectWithFiberScheduler
    events
  end

  # Called when the thread ends.
  def close
    until @sleeping.empty? && @blocked.empty?
      @ready.pop(timeout: pause)&.resume
      due = @sleeping.select { |_, time| time <= now }.keys
      due.each do |fiber|
        @sleeping.delete(fiber)
        fiber.resume
      end
    end
  end

  private

  def pause = @sleeping.empty? ? nil : [@sleeping.values.min - now, 0].max

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
