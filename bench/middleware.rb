# frozen_string_literal: true

# What the middleware costs a request or a job, with warm caches and with cold ones.
#
# The request does nothing. "Cold" is after a loop has read 4 MB of memory: that takes rperf's data out of the first two
# levels of caches, as a server does that computes between requests. The interpreter stays warm, so a server that sleeps
# pays more. Each figure is the median of requests in a round; what is shown is the median of rounds, less what the call
# takes without middleware, which stands in the first rows. Ticks are so seldom that they aren't in it.

require_relative "support/child"
require_relative "support/engines"
require_relative "support/machine"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Middleware
  KINDS = %w[rack sidekiq].freeze
  CHILD = File.expand_path("middleware/child.rb", __dir__)
  HEADINGS = %w[of engine session caches us quartiles].freeze

  module_function

  def options(arguments)
    defaults = { runs: 9, requests: 300, engines: ["interpreter"] }
    Bench::Options.parse("middleware", arguments, defaults, smoke: { runs: 1, requests: 10 }) do |parser, given|
      Bench::Engines.add_option(parser, given, "interpreter")
      parser.on("--requests N", Integer, "requests in a round (default 300)") { |it| given[:requests] = it }
    end
  end

  def run(arguments)
    options = options(arguments)
    Bench::Machine.head("#{options[:runs]} interleaved rounds of #{options[:requests]} requests each, medians")
    rows = KINDS.product(Bench::Engines.available(options[:engines])).flat_map do |kind, engine|
      measured = Bench::Child.json(CHILD, kind, options[:runs], options[:requests], engine:)
      alone = measured.select { |it| it[:session] == "no middleware" }.to_h { |it| [it[:caches], it[:rounds]] }
      measured.map { |it| [kind, engine, it[:session], it[:caches], *figures(it, alone.fetch(it[:caches]))] }
    end
    Bench::Table.print(HEADINGS, rows)
  end

  def figures(measured, alone)
    return [microseconds(Bench::Statistics.median(alone)), "-"] if measured[:rounds].equal?(alone)

    more = measured[:rounds].zip(alone).map { |with, without| with - without }
    [microseconds(Bench::Statistics.median(more)),
     Bench::Statistics.quartiles(more).map { |it| microseconds(it) }.join(" to ")]
  end

  def microseconds(nanoseconds) = format("%.1f", nanoseconds / 1e3)
end

Middleware.run(ARGV)
