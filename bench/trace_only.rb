# frozen_string_literal: true

# The cost of tracing one method of a web application, while it goes on and afterwards.
#
# The Rack application serves requests in a process that lives on: untraced, with one method of its controller traced,
# untraced again, by turns. A ratio is the median of the ratios of CPU time per request to the untraced rounds just
# before and after. As many requests as are measured come before each round, for compilers that begin anew. Under
# ZJIT it can't be. The method's calls must be as many as the application itself has counted.

require_relative "rack/site"
require_relative "support/engines"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

# Measures and prints.
module TraceOnly
  HEADINGS = %w[engine requests traced quartiles afterwards quartiles calls counted].freeze

  module_function

  def options(arguments)
    defaults = { runs: 10, requests: 2000, engines: %w[interpreter yjit] }
    Bench::Options.parse("trace-only", arguments, defaults, smoke: { runs: 1, requests: 40 }) do |parser, given|
      parser.on("--requests N", Integer, "requests of a round (default 2000)") { |it| given[:requests] = it }
      Bench::Engines.add_option(parser, given, "interpreter and yjit")
    end
  end

  def run(options)
    return puts("The Rack application can't be had: #{Site.missing}") if Site.missing

    Bench::Machine.head("#{options[:runs]} rounds, medians; CPU time of the server per request")
    rows = Bench::Engines.available(options[:engines]).map do |engine|
      warn("trace-only: #{engine} ...")
      Site.open(engine:, env: { "SHOP_COUNTS" => "1" }) { |site| row(engine, measure(site, options), options) }
    end
    Bench::Table.print(HEADINGS, rows)
  end

  # Rounds by turns, after as many to warm up; the method's calls and the application's own count.
  def measure(site, options)
    2.times { round(site, "none", options) }
    rounds = Array.new(options[:runs]) { ["none", "rperf only", "none"].map { |name| round(site, name, options) } }
    traced = rounds.map { |it| it[1] }
    { rounds: rounds.map { |it| it.map { |round| round[:cpu_ns].fdiv(round[:requests]) } },
      calls: traced.sum { |it| it[:calls] }, counted: traced.sum { |it| it[:counted] } }
  end

  def round(site, name, options)
    site.command("start", name, 100)
    before = site.command("searches")[:count]
    # A compiler has thrown its code away.
    site.load(options[:requests])
    site.command("measure")
    load = site.load(options[:requests])
    stopped = site.command("stop")
    load.merge(stopped, counted: site.command("searches")[:count] - before)
  end

  def row(name, measured, options)
    during = measured[:rounds].map { |first, traced, last| traced / Bench::Statistics.median([first, last]) }
    afterwards = measured[:rounds].map { |first, _, last| last / first }
    [name, options[:requests].to_s, *shown(during), *shown(afterwards), measured[:calls].to_s, measured[:counted].to_s]
  end

  def shown(ratios)
    quartiles = Bench::Statistics.quartiles(ratios).map { |it| format("%.3f", it) }.join(" to ")
    [format("%.3f", Bench::Statistics.median(ratios)), quartiles]
  end
end

TraceOnly.run(TraceOnly.options(ARGV)) if $PROGRAM_NAME == __FILE__
