# frozen_string_literal: true

# The Rack application, served by WEBrick on a free port of this machine, which
# it prints. It then takes commands, one a line, and answers each with JSON:
# "start PROFILER HERTZ", "measure" (from here on, the CPU time that "stop" tells),
# "stop", "memory", "searches". It ends when its input does.

require "json"
require_relative "../support/clock"
require_relative "../support/proc_status"
require_relative "../support/profilers"

# Gems that Bundler has are seen through Bundler only.
begin
  require "rackup"
rescue LoadError
  require "bundler/setup"
  require "rackup"
end
require "rackup/handler/webrick"
require_relative "app"

# The commands.
class Commands
  def start(name, hertz)
    @profiler = Bench::Profilers.fetch(name)
    require @profiler.library if @profiler.library
    GC.start
    @profiler.start.call(Integer(hertz))
    {}
  end

  def measure
    @cpu = Bench::Clock.process_cpu
    {}
  end

  def stop
    cpu_ns = Bench::Clock.process_cpu - @cpu
    started = Bench::Clock.wall
    counted = @profiler.stop.call
    stopped = { cpu_ns:, stop_ns: Bench::Clock.wall - started }
    counted.is_a?(Bench::Profilers::Counted) ? stopped.merge(calls: counted.calls) : stopped
  end

  def searches = Shop::SEARCHES

  def memory = { rss_kb: Bench::ProcStatus.rss_kb, peak_kb: Bench::ProcStatus.peak_rss_kb }

  def serve(input, output)
    input.each_line do |line|
      output.puts(JSON.generate(public_send(*line.chomp.split("\t"))))
    end
  end
end

$stdout.sync = true
options = { Host: "127.0.0.1", Port: 0, AccessLog: [], Logger: WEBrick::Log.new(File::NULL) }
Rackup::Handler::WEBrick.run(Shop, **options) do |server|
  # WEBrick writes head and body separately. For the body, Nagle's algorithm
  # would wait 40 ms.
  server.listeners.each { |listener| listener.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
  puts server.listeners.first.addr[1]
  Thread.new do
    Commands.new.serve($stdin, $stdout)
    server.shutdown
  end
end
