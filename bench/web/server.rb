# frozen_string_literal: true

# A server on a free port of this machine, which it prints: server.rb KIND, with a kind of {Web::SERVERS}. Each request,
# or job, computes for 200 us; one for a page does more. It then takes commands, one a line, and answers each with JSON:
# "start PROFILER HERTZ", "measure" (from here on, the CPU time that "stop" tells), "stop". It ends when its input does.

require "json"
require_relative "../support/clock"
require_relative "../support/own_threads"
require_relative "../support/profilers"
require_relative "jobs"
require_relative "pages"
require_relative "servers"

module Web
  WORK_NS = 200_000
  BODY = "ok\n"
  HEADERS = { "content-type" => "text/plain", "content-length" => BODY.bytesize.to_s }.freeze

  # The application.
  module App
    def self.compute(turns)
      turn = 0
      turn += 1 while turn < turns
    end

    # How many turns take as long as a request is to compute, by the thread's CPU clock.
    def self.calibrate
      times = Array.new(50) do
        started = Bench::Clock.thread_cpu
        compute(10_000)
        Bench::Clock.thread_cpu - started
      end
      @turns = 10_000 * WORK_NS / times.sort[times.size / 2]
    end

    def self.call(_)
      compute(@turns)
      [200, HEADERS.dup, [BODY]]
    end
  end

  SERVERS = {
    "sockets" => -> { Sockets.new(App) }, "puma" => -> { PumaServer.new(App) }, "pages" => -> { Pages.new },
    "sidekiq" => -> { Jobs.new }
  }.freeze

  # The commands.
  class Commands
    def initialize(server)
      @server = server
    end

    def start(name, hertz)
      profiler, with = name.split(" with ")
      case with
      when "middleware"
        require "rperf"
        @server.middleware = true
      when "port"
        require "rperf"
        Rperf.listen
        @has_port = true
      end
      @profiler = Bench::Profilers.fetch(profiler)
      require @profiler.library if @profiler.library
      GC.start
      @profiler.start.call(Integer(hertz))
      {}
    end

    def measure
      @threads = Bench::OwnThreads.now
      @cpu = Bench::Clock.process_cpu
      {}
    end

    def stop
      cpu_ns = Bench::Clock.process_cpu - @cpu
      own_ns = Bench::OwnThreads.since(@threads).cpu_ns
      @profiler.stop.call
      @server.middleware = false
      Rperf.const_get(:Port).close if @has_port
      @has_port = false
      { cpu_ns:, own_ns: }
    end

    def serve(input, output)
      input.each_line { |line| output.puts(JSON.generate(public_send(*line.chomp.split("\t")))) }
    end
  end
end

$stdout.sync = true
Web::App.calibrate
server = Web::SERVERS.fetch(ARGV.fetch(0)).call
server.start
puts server.port
begin
  Web::Commands.new(server).serve($stdin, $stdout)
ensure
  server.stop
end
exit!(0)
