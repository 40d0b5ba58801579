# frozen_string_literal: true

require "io/console"
require "pty"
require "rbconfig"
require_relative "../support/proc_status"
require_relative "figure"
require_relative "program"

module Live
  # `rperf top` on a terminal.
  class Screens
    COMMAND = File.expand_path("../../exe/rperf", __dir__)
    # Redraws a second.
    HERTZ = 10
    # What stands on the first screen.
    FIRST = /Methods/

    def initialize(options)
      @options = options
    end

    def figures = [first, *large]

    private

    def first
      took = Program.open({ busy: 1 }) { |program| Array.new(@options[:runs]) { show(program) { |ms, _| ms } } }
      Figure.median("rperf top: first screen", took, "ms", 300)
    end

    def large
      Program.open({ nodes: @options[:nodes], busy: 1 }) do |program|
        show(program) do |_, pid|
          sleep @options[:seconds]
          before = Bench::ProcStatus.cpu_ns(pid)
          seconds = @options[:seconds] * 2
          sleep seconds
          share = (Bench::ProcStatus.cpu_ns(pid) - before) / 1e9 / seconds
          what = "rperf top, #{@options[:nodes]} nodes at #{HERTZ} Hz"
          [Figure.new("#{what}: CPU", share * 100, "%", bar: 10),
           Figure.new("#{what}: resident memory", rss_kb(pid) / 1e3, "MB", bar: 60),
           Figure.new("#{what}: CPU time a redraw", share * 1000 / HERTZ, "ms", bar: 16)]
        end
      end
    end

    # Yields how long it takes to the first screen, and the command's process.
    def show(program)
      command = [RbConfig.ruby, "-I", Bench::Child::LIBRARY, COMMAND, "top", program.pid.to_s]
      began = Bench::Clock.wall
      result = nil
      PTY.spawn({ "TERM" => "xterm" }, *command, "--interval", (1.0 / HERTZ).to_s) do |output, input, pid|
        input.winsize = [24, 80]
        text = +""
        text << output.readpartial(1 << 16) until text.match?(FIRST)
        took = (Bench::Clock.wall - began) / 1e6
        reader = Thread.new { loop { output.readpartial(1 << 16) } }
        reader.report_on_exception = false
        result = yield(took, pid)
      ensure
        input.write("q")
        Process.wait(pid)
        reader&.kill
      end
      result
    end

    def rss_kb(pid) = Integer(File.read("/proc/#{pid}/status")[/^VmRSS:\s*(\d+)/, 1])
  end
end
