# frozen_string_literal: true

# Four threads in a ring hand a few bytes on through pipes: short system calls, each
# of which lets go of the GVL. Each reads what the one before it wrote; with pipes of
# their own they would run at any of several speeds, as chance has it.

THREADS = 4
MESSAGE = "sixteen bytes..."

def hand_on(reader, writer, times)
  times.times do
    reader.sysread(MESSAGE.bytesize)
    writer.syswrite(MESSAGE)
  end
end

WORKLOAD = lambda do |scale|
  times = (70_000 * scale).ceil
  pipes = Array.new(THREADS) { IO.pipe }
  pipes.each { |_, writer| writer.syswrite(MESSAGE) }
  pipes.zip(pipes.rotate).map { |(reader, _), (_, writer)| Thread.new { hand_on(reader, writer, times) } }.each(&:join)
  pipes.flatten.each(&:close)
end
