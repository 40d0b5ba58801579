# frozen_string_literal: true

# How much memory profiling takes, in a server under load and over many samples.
#
# The Rack application is under load for a minute, with and without rperf in turn;
# its resident memory is read at the end, while it is still being profiled. Then
# the engine alone is given 10 million samples of 2,000 stacks.

require_relative "rack/site"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Memory
  PROFILERS = ["none", "rperf cpu", "rperf wall"].freeze
  HEADINGS = ["profiler", "requests", "RSS MB", "extra MB", "quartiles", "peak MB"].freeze
  ROOT = File.expand_path("..", __dir__)
  SAMPLING_BENCH = "crates/rperf-sampling/benches/memory.rs"

  module_function

  def options(arguments)
    defaults = { runs: 3, seconds: 60.0, frequency: 1000 }
    Bench::Options.parse("memory", arguments, defaults, smoke: { runs: 1, seconds: 0.3 }) do |parser, given|
      parser.on("--seconds S", Float, "length of the load (default 60)") { |it| given[:seconds] = it }
      parser.on("--frequency HZ", Integer, "samples per second (default 1000)") { |it| given[:frequency] = it }
      parser.on("--evaluate", "templates are evaluated for each request, not compiled once") do
        ENV["SHOP_EVALUATES"] = "1"
      end
    end
  end

  def run(options)
    Bench::Machine.head("The Rack application after #{options[:seconds]} s of load, #{options[:frequency]} Hz, " \
                        "medians of #{options[:runs]} interleaved runs")
    if Site.missing
      puts "left out: #{Site.missing}", ""
    else
      Bench::Table.print(HEADINGS, rows(results(options)))
    end
    engine unless options[:smoke]
  end

  def results(options)
    Bench::Interleave.call(PROFILERS, runs: options[:runs], warm_up: false) do |name|
      warn("memory: #{name}, #{options[:seconds]} s ...")
      Site.open do |site|
        site.command("start", name, options[:frequency])
        load = site.load("#{options[:seconds]}s")
        load.merge(site.command("memory"))
      end
    end
  end

  def rows(results)
    base = results["none"].map { |run| run[:rss_kb] }
    results.map do |name, runs|
      extra = runs.zip(base).map { |run, without| run[:rss_kb] - without }
      [name, format("%d", Bench::Statistics.median(runs.map { |run| run[:requests] })),
       megabytes(runs.map { |run| run[:rss_kb] }), format("%+.1f", Bench::Statistics.median(extra) / 1024.0),
       Bench::Statistics.quartiles(extra).map { |it| format("%+.1f", it / 1024.0) }.join(" to "),
       megabytes(runs.map { |run| run[:peak_kb] })]
    end
  end

  def megabytes(values) = format("%.1f", Bench::Statistics.median(values) / 1024.0)

  def engine
    there = File.exist?(File.join(ROOT, SAMPLING_BENCH))
    return puts("the engine alone is left out: no #{SAMPLING_BENCH}") unless there

    done = system("cargo", "bench", "--quiet", "-p", "rperf-sampling", "--bench", "memory", chdir: ROOT)
    puts "the engine alone is left out: cargo isn't there" if done.nil?
    abort("bench/memory: the engine's benchmark failed") if done == false
  end
end

Memory.run(Memory.options(ARGV)) if $PROGRAM_NAME == __FILE__
