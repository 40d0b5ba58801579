# frozen_string_literal: true

# Four threads write a few bytes into pipes of their own and read them back:
# short system calls, each of which lets go of the GVL.

def echo(times)
  reader, writer = IO.pipe
  times.times do
    writer.syswrite("sixteen bytes...")
    reader.sysread(16)
  end
ensure
  reader.close
  writer.close
end

WORKLOAD = lambda do |scale|
  Array.new(4) { Thread.new { echo((40_000 * scale).ceil) } }.each(&:join)
end
