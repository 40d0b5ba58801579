# frozen_string_literal: true

require_relative "../rack/site"
require_relative "../support/interleave"
require_relative "figure"
require_relative "program"

module Live
  # What a client costs that watches a session, and what it gets.
  class Streams
    HERTZ = 10
    ENGINES = %w[interpreter yjit].freeze

    def initialize(options)
      @options = options
    end

    def figures = [*watched, *steps, *rack, *rdoc, *first, *blocked, *silent_clients]

    private

    # The same process, watched in every other run. What the port's thread does beside it is told apart.
    def watched
      Bench::Engines.available(ENGINES).flat_map do |engine|
        Program.open({ session: 1000 }, engine:) do |program|
          runs = runs_by_turns(program)
          shares = runs[true].map { |it| it[:port_ns].fdiv(it[:wall_ns]) * 100 }
          ratios = Bench::Statistics.ratios(*runs.values_at(true, false).map { |some| some.map { |it| it[:wall_ns] } })
          what = "watched at #{HERTZ} Hz, #{engine}"
          [Figure.ratio("#{what}: time, to the same session unwatched", ratios, 1.002),
           Figure.median("#{what}: the port's thread", shares, "% CPU")]
        end
      end
    end

    # Runs are so short that what disturbs the machine disturbs both of a pair, and so long that each has some pulls.
    def runs_by_turns(program)
      run = lambda do |_ = nil|
        before = port_cpu(program)
        program.command("run", "interpreter", @options[:scale] / 5).merge(port_ns: port_cpu(program) - before)
      end
      Bench::Interleave.call([false, true], runs: @options[:pairs]) do |is_watched|
        is_watched ? Port.watching(program.path, HERTZ, &run).first : run.call
      end
    end

    # A step stops the program once in each tenth of a second; hardly anything else does at 1 Hz.
    def steps
      tenths = (@options[:seconds] * 10 * 4).ceil
      Program.open({ session: 1 }) do |program|
        alone = program.command("stops", tenths)[:longest].map { |it| it / 1e3 }
        program.command("stops", 3)
        with, = Port.watching(program.path, HERTZ) { program.command("stops", tenths) }
        with = with[:longest].map { |it| it / 1e3 }
        what = "a computing thread's longest stop in 0.1 s"
        more = [0.5, 0.99].map { |part| [with, alone].map { |it| Bench::Statistics.quantile(it, part) }.inject(:-) }
        [Figure.median("#{what}, unwatched", alone, "us"), Figure.median("#{what}, watched", with, "us"),
         Figure.new("longer by a step, median", more.first, "us", bar: 50),
         Figure.new("longer by a step, p99", more.last, "us", bar: 300)]
      end
    end

    def rack
      return [] if Site.missing

      Dir.mktmpdir("rperf-bench") do |directory|
        Site.open(env: { "RPERF_LISTEN" => directory }) do |site|
          site.command("start", "rperf wall", 1000)
          site.load("#{@options[:seconds]}s")
          _, sizes = Port.watching(Dir[File.join(directory, "*.sock")].fetch(0), HERTZ) do
            site.load("#{@options[:seconds] * 2}s")
          end
          [Figure.median("a pull at #{HERTZ} Hz, a Rack app under load", sizes.drop(1).map { |it| it / 1e3 }, "kB", 2)]
        end
      end
    end

    def rdoc
      Program.open({ session: 1000 }) do |program|
        run, sizes = Port.watching(program.path, 20) { program.command("run", "rdoc", @options[:scale]) }
        rate = sizes.drop(1).sum / 1e3 / (run[:wall_ns] / 1e9)
        [Figure.new("pulls at 20 Hz, rdoc", rate, "kB/s", bar: 100)]
      end
    end

    # A client that comes to a session with a large tree.
    def first
      Program.open({ nodes: @options[:nodes] }, real_time: true) do |program|
        before = program.command("state")[:rss_kb]
        runs = Array.new(@options[:runs]) do
          program.begin("gap", 2)
          sleep 0.2
          began = Bench::Clock.wall
          bytes = program.ask { |port| port.pull(1000) }
          took = Bench::Clock.wall - began
          [bytes / 1e6, took / 1e6, program.answer[:gap_ns] / 1e6, program.command("gap", 2)[:gap_ns] / 1e6]
        end
        more = (program.command("state")[:rss_kb] - before)
        what = "the first pull of #{@options[:nodes]} nodes"
        sizes, took, gaps, alone = runs.transpose
        [Figure.median("#{what}: size", sizes, "MB", 2), Figure.median("#{what}: time", took, "ms", 200),
         *Figure.gaps(what, gaps, alone, 0.4),
         Figure.new("#{what}: memory afterwards, with the table", more, "kB")]
      end
    end

    # Many threads, of which hardly one does something.
    def blocked
      threads, depth = @options[:blocked]
      Program.open({ busy: 1, blocked: "#{threads}:#{depth}", session: 1000 }) do |program|
        program.command("turns", 0.5)
        seconds = @options[:seconds] / 8
        cpu = 0
        runs = Bench::Interleave.call([false, true], runs: @options[:pairs]) do |is_watched|
          next program.command("turns", seconds)[:turns] unless is_watched

          before = port_cpu(program)
          turns, = Port.watching(program.path, HERTZ) { program.command("turns", seconds)[:turns] }
          cpu += port_cpu(program) - before
          turns
        end
        share = cpu / 1e9 / (seconds * (@options[:pairs] + 1)) * 100
        what = "#{threads} blocked threads, watched at #{HERTZ} Hz"
        [Figure.new("#{what}: the port's thread", share, "% CPU", bar: 1),
         Figure.ratio("#{what}: the program's work", Bench::Statistics.ratios(runs[false], runs[true]), 1.005)]
      end
    end

    def port_cpu(program)
      Dir.glob("/proc/#{program.pid}/task/*").sum do |directory|
        File.read("#{directory}/comm").chomp == "rperf-port" ? File.read("#{directory}/schedstat").to_i : 0
      end
    end

    # Clients that ask and never read, beside one that does.
    def silent_clients
      Program.open({ busy: 1, session: 1000 }) do |program|
        turns(program)
        before = program.command("state")[:rss_kb]
        runs = Bench::Interleave.call([false, true], runs: @options[:pairs]) do |are_there|
          are_there ? beside_silent(program) { turns(program) } : turns(program)
        end
        times, more = beside_silent(program) do
          [program.ask { |port| times_of_pulls(port) }, program.command("state")[:rss_kb] - before]
        end
        what = "7 clients that never read"
        [Figure.ratio("#{what}: the program's work", Bench::Statistics.ratios(runs[false], runs[true]), 1.002),
         Figure.new("#{what}: memory", more / 1e3, "MB", bar: 2),
         Figure.p99("#{what}: a pull of another, p99", times, "ms", 50)]
      end
    end

    # The last place is for one that reads.
    def beside_silent(program)
      silent = Array.new(7) { UNIXSocket.new(program.path) }
      silent.each { |socket| socket.write("GET /v1/delta HTTP/1.1\r\n\r\n" * 50) }
      yield
    ensure
      silent.each(&:close)
    end

    def turns(program) = program.command("turns", @options[:seconds] / 8)[:turns]

    def times_of_pulls(port)
      port.pull
      Array.new((@options[:seconds] * HERTZ * 2).ceil) do
        sleep(1.0 / HERTZ)
        began = Bench::Clock.wall
        port.pull
        (Bench::Clock.wall - began) / 1e6
      end
    end
  end
end
