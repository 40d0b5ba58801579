# frozen_string_literal: true

# flood.rb PID NUMBER...: sends signals with these numbers to each thread of a process in turn, thousands a second,
# until there is none any more. A program of its own: it warns that Kernel#syscall isn't for everyone.

require "rbconfig"

tgkill = { "x86_64" => 234, "aarch64" => 131 }.fetch(RbConfig::CONFIG["host_cpu"])
pid, *numbers = ARGV.map { |argument| Integer(argument) }
tasks = "/proc/#{pid}/task"

begin
  loop do
    threads = Dir.children(tasks)
    break if threads.empty? || File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "Z"

    threads.product(numbers) do |thread, number|
      syscall(tgkill, pid, Integer(thread), number)
      sleep(0.0002)
    rescue Errno::ESRCH
      nil # That thread has ended.
    end
  end
rescue Errno::ENOENT, Errno::ESRCH
  nil # It has ended.
end
