# frozen_string_literal: true

# The cost of tracing one method of a web application, while it goes on and afterwards.
#
# It is near 1 %, so separate processes wouldn't show it: each has its own layout in memory. In one process, on one
# thread, the Rack application gets the same requests again and again, in short segments: untraced ones, then untraced
# and traced ones by turns. Behind each switch come some that aren't measured, for compilers that begin anew.
#
# "traced" and "afterwards" are ratios of the requests' fastest CPU times to those of untraced segments, afterwards to
# those before the first trace, as against a process without a trace: medians and ranges of the processes. "by pairs" is
# the median of the ratios of neighbouring segments of all processes, with the interval that has the true one in 95 of
# 100 cases if they are independent. Under ZJIT it can't be.
#
# The second table is of the same application in a server under load, with rounds of requests: the method's calls, which
# must be as many as the application itself has counted, the CPU time of a request, its ratio to that of the untraced
# rounds just before and after, and the ratio of these. The last column is reckoned: what part of a request the calls'
# tracing is, by their cost in the first table.

require_relative "rack/site"
require_relative "support/child"
require_relative "support/engines"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module TraceOnly
  COSTS = ["engine", "traced", "range", "a call, us", "by pairs", "95 %", "afterwards", "range", "begin, ms",
           "end, ms"].freeze
  UNDER = ["engine", "requests", "calls", "counted", "a request, us", "traced", "95 %", "afterwards", "95 %",
           "calls' part, %"].freeze
  CHILD = File.expand_path("trace_only/child.rb", __dir__)

  module_function

  def options(arguments)
    defaults = { runs: 7, segments: 40, requests: 100, rounds: 30, engines: %w[interpreter yjit] }
    smoke = { runs: 1, segments: 2, requests: 20, rounds: 1 }
    Bench::Options.parse("trace-only", arguments, defaults, smoke:) do |parser, given|
      parser.on("--segments N", Integer, "pairs of segments of a process (default 40)") { |it| given[:segments] = it }
      parser.on("--requests N", Integer, "requests of a segment (default 100)") { |it| given[:requests] = it }
      parser.on("--rounds N", Integer, "traced rounds in the server (default 30)") { |it| given[:rounds] = it }
      Bench::Engines.add_option(parser, given, "interpreter and yjit")
    end
  end

  def run(options)
    engines = Bench::Engines.available(options[:engines])
    Bench::Machine.head("#{options[:runs]} processes, #{options[:segments]} pairs of segments of " \
                        "#{options[:requests]} requests in each; CPU time")
    runs = engines.to_h { |engine| [engine, runs(engine, options)] }
    Bench::Table.print(COSTS, runs.map { |engine, all| costs(engine, all) })
    return puts("No server: #{Site.missing}") if Site.missing

    Bench::Table.print(UNDER, runs.map { |engine, all| under_load(engine, call_ns(all), options) })
  end

  def runs(engine, options)
    warn("trace-only: #{engine} ...")
    Array.new(options[:runs]) do
      run, other = [[], ["untraced"]].map do |arguments|
        Bench::Child.json(CHILD, options[:segments], options[:requests], *arguments, engine:)
      end
      # Each process gets faster or slower as time goes by.
      run.merge(afterwards: run[:untraced].fdiv(run[:before]) / other[:untraced].fdiv(other[:before]))
    end
  end

  # What tracing adds to a call.
  def call_ns(runs) = Bench::Statistics.median(runs.map { |it| (it[:traced] - it[:untraced]).fdiv(it[:calls]) })

  def costs(engine, runs)
    traced = runs.map { |it| it[:traced].fdiv(it[:untraced]) }
    afterwards = runs.map { |it| it[:afterwards] }
    pairs = runs.flat_map { |it| it[:ratios] }
    switches = %i[begin end].map { |name| Bench::Statistics.median(runs.flat_map { |it| it[name] }) / 1e6 }
    [engine, *shown(traced, traced.minmax), format("%.2f", call_ns(runs) / 1000),
     *shown(pairs, Bench::Statistics.median_interval(pairs)), *shown(afterwards, afterwards.minmax),
     *switches.map { |it| format("%.1f", it) }]
  end

  def shown(ratios, range)
    [format("%.3f", Bench::Statistics.median(ratios)), range.map { |it| format("%.3f", it) }.join(" to ")]
  end

  # Rounds of requests in one server: untraced ones, and traced ones in between.
  def under_load(engine, call_ns, options)
    Site.open(engine:, env: { "SHOP_COUNTS" => "1" }) do |site|
      untraced = [round(site, "none", options), round(site, "none", options)].drop(1)
      traced = Array.new(options[:rounds]) do
        round(site, "rperf only", options).tap { untraced << round(site, "none", options) }
      end
      requests, calls, counted = %i[requests calls counted].map { |name| traced.sum { |it| it[name] } }
      numbers = [requests, calls, counted, (request_ns(traced) / 1000).round]
      part = 100 * call_ns * calls / (requests + (options[:requests] * options[:rounds])) / request_ns(traced)
      [engine, *numbers.map(&:to_s), *ratios(traced, untraced).flat_map { |some| median(some) }, format("%.2f", part)]
    end
  end

  # @return [Array<Array<Float>>] of traced rounds to the untraced ones around them; of those after them to those before
  def ratios(traced, untraced)
    around = untraced.map { |it| request_ns([it]) }.each_cons(2).to_a
    [traced.zip(around).map { |it, both| request_ns([it]) / (both.sum / 2) },
     around.map { |before, after| after / before }]
  end

  def request_ns(rounds) = rounds.sum { |it| it[:cpu_ns] }.fdiv(rounds.sum { |it| it[:requests] })

  def median(ratios) = shown(ratios, Bench::Statistics.median_interval(ratios))

  def round(site, name, options)
    site.command("start", name, 100)
    before = site.command("searches")[:count]
    # A compiler has thrown its code away.
    site.load(options[:requests])
    site.command("measure")
    load = site.load(options[:requests] * 4)
    load.merge(site.command("stop"), counted: site.command("searches")[:count] - before)
  end
end

TraceOnly.run(TraceOnly.options(ARGV)) if $PROGRAM_NAME == __FILE__
