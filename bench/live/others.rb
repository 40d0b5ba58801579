# frozen_string_literal: true

require "rbconfig"
require_relative "../support/interleave"
require_relative "figure"
require_relative "program"

module Live
  # Commands that do the like for running programs, if they are in PATH: what they take, beside rperf's.
  class Others
    RPERF = [RbConfig.ruby, "-I", Bench::Child::LIBRARY, File.expand_path("../../exe/rperf", __dir__)].freeze
    # The command, its program's interpreter and text (nil: a Ruby), and what asks for stacks.
    STACKS = {
      "rperf stacks" => [nil, [*RPERF, "stacks"]],
      "rbspy snapshot" => [nil, %w[rbspy snapshot --pid]],
      "py-spy dump" => [["python3", "threads.py"], %w[py-spy dump --pid]],
      "jstack" => [["java", "Threads.java"], %w[jstack]]
    }.freeze
    # The same that profile for some seconds.
    PROFILES = {
      "rperf attach" => ->(pid, seconds, path) { [*RPERF, "attach", pid, "--duration", seconds, "-o", path] },
      "rbspy record" => lambda do |pid, seconds, path|
        ["rbspy", "record", "--pid", pid, "--rate", "1000", "--duration", seconds, "--silent", "--file", path,
         "--raw-file", "#{path}.raw"]
      end
    }.freeze

    def self.there?(command)
      return true if command.first == RPERF.first

      ENV.fetch("PATH", "").split(":").any? { |directory| File.executable?(File.join(directory, command.first)) }
    end

    def initialize(options)
      @options = options
    end

    def figures = [*stacks, *profiles]

    # @return [Array<String>] those that can't be had
    def self.missing
      commands = [*STACKS.values.flatten(1).compact, *PROFILES.values.map { |command| command.call("1", "1", "x") }]
      commands.reject { |command| there?(command) }.map(&:first).uniq
    end

    private

    def stacks
      threads, depth = @options[:blocked]
      found = STACKS.select { |_, commands| commands.compact.all? { |command| Others.there?(command) } }
      found.flat_map do |name, (language, command)|
        took = program(language, threads, depth) { |pid| Array.new(@options[:runs]) { time(*command, pid.to_s) } }
        took = took.compact
        took.empty? ? [] : [Figure.median("#{name}, #{threads} threads, #{depth} frames deep", took, "ms")]
      end
    end

    def program(language, threads, depth, &)
      return Program.open({ busy: 1, blocked: "#{threads}:#{depth}" }) { |program| yield program.pid } unless language

      command, text = language
      IO.popen([command, File.join(__dir__, text), threads.to_s, depth.to_s], "r+") do |pipe|
        pipe.readline
        yield pipe.pid
      ensure
        pipe.close_write
      end
    end

    # @return [Float, nil] ms; nil if it has failed
    def time(*command)
      began = Bench::Clock.wall
      done = system(*command, out: File::NULL, err: File::NULL)
      (Bench::Clock.wall - began) / 1e6 if done
    end

    # A busy program's work, and the command's CPU time.
    def profiles
      seconds = @options[:seconds]
      found = PROFILES.select { |_, command| Others.there?(command.call("1", "1", "x")) }
      # With a helper, as it is idle before and after.
      Program.open({ blocked: "10:33" }, env: { "RPERF_LISTEN_HELPER" => "1" }) do |program|
        program.command("turns", 0.5)
        runs = Bench::Interleave.call([nil, *found.keys], runs: @options[:runs], warm_up: false) do |name|
          profiled(program, found[name], seconds)
        end
        found.keys.flat_map do |name|
          ratios = Bench::Statistics.ratios(runs[nil].map(&:first), runs[name].map(&:first))
          [Figure.ratio("#{name}: the program's work", ratios, nil),
           Figure.median("#{name}: its own CPU", runs[name].map { |it| it.last * 100 }, "%")]
        end
      end
    end

    # The program's turns, and the share of a CPU that the command takes.
    def profiled(program, command, seconds)
      return [program.command("turns", seconds)[:turns], 0] unless command

      Dir.mktmpdir("rperf-bench") do |directory|
        words = command.call(program.pid.to_s, (seconds * 2).ceil.to_s, File.join(directory, "p.pb.gz"))
        pid = Process.spawn(*words, out: File::NULL, err: File::NULL)
        sleep seconds / 2
        before = Bench::ProcStatus.cpu_ns(pid)
        turns = program.command("turns", seconds)[:turns]
        share = (Bench::ProcStatus.cpu_ns(pid) - before) / (seconds * 1e9)
        Process.wait(pid)
        [turns, share]
      end
    end
  end
end
