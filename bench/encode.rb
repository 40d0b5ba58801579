# frozen_string_literal: true

# How long it takes to write and read a large profile.
#
# 100,000 stacks of depth 60 with shared callers, made from chance (always the
# same); each format is encoded in memory, as at the end of a session.

require "tempfile"
require "rperf"
require_relative "support/clock"
require_relative "support/interleave"
require_relative "support/machine"
require_relative "support/made_profile"
require_relative "support/options"
require_relative "support/statistics"
require_relative "support/table"

module Encode
  FORMATS = { pprof: "pprof.gz", collapsed: "collapsed", text: "text" }.freeze
  # The base of Rperf.load and Rperf.save: the Hash is not measured.
  Native = Rperf.const_get(:NativeProfile)
  HEADINGS = ["what", "ms", "quartiles", "size MB"].freeze

  module_function

  def options(arguments)
    defaults = { runs: 10, stacks: 100_000, depth: 60 }
    Bench::Options.parse("encode", arguments, defaults, smoke: { runs: 1, stacks: 500 }) do |parser, given|
      parser.on("--stacks N", Integer, "stacks in the profile (default 100000)") { |it| given[:stacks] = it }
      parser.on("--depth N", Integer, "frames in a stack (default 60)") { |it| given[:depth] = it }
    end
  end

  def run(options)
    Bench::Machine.head("#{options[:stacks]} stacks of depth #{options[:depth]}, medians of #{options[:runs]} " \
                        "interleaved runs")
    profile = Native.from_h(Bench::MadeProfile.new(**options.slice(:stacks, :depth)).to_h)
    # The Hash's objects must not be collected while the clock runs.
    GC.start
    Tempfile.create(["rperf-bench", ".pb.gz"]) do |file|
      profile.write(file.path, :pprof)
      sizes = FORMATS.to_h { |format, name| ["encode #{name}", profile.encode(format).bytesize] }
      sizes["decode pprof.gz"] = File.size(file.path)
      results = measure(profile, file.path, sizes.keys, options[:runs])
      Bench::Table.print(HEADINGS, results.map { |what, times| row(what, times, sizes[what]) })
    end
  end

  def measure(profile, path, cases, runs)
    Bench::Interleave.call(cases, runs:) do |what|
      format = FORMATS.key(what.delete_prefix("encode "))
      started = Bench::Clock.wall
      what.start_with?("encode") ? profile.encode(format) : Native.load(path)
      Bench::Clock.wall - started
    end
  end

  def row(what, times, size)
    quartiles = Bench::Statistics.quartiles(times).map { |it| format("%.0f", it / 1e6) }
    [what, format("%.1f", Bench::Statistics.median(times) / 1e6), quartiles.join(" to "), format("%.2f", size / 1e6)]
  end
end

Encode.run(Encode.options(ARGV)) if $PROGRAM_NAME == __FILE__
