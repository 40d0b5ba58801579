# frozen_string_literal: true

# All benchmarks but `against`, which needs another checkout, one after the other: some hours (--smoke: two minutes).
#
# Options are those that all have; without --runs each does as many as it thinks
# right. One that fails doesn't keep the others from running.

require_relative "support/child"

NAMES = %w[
  startup sample_cost encode report overhead middleware web wakeups trace trace_only allocations gc_cost jit accuracy
  blame memory snapshot heap live
].freeze

if ARGV.intersect?(%w[-h --help])
  puts "usage: bin/bench all [--runs N] [--smoke]"
  exit
end

failed = NAMES.reject do |name|
  puts "== #{name.tr("_", "-")}", ""
  $stdout.flush
  system(*Bench::Child.command(File.join(__dir__, "#{name}.rb"), *ARGV))
end
abort("failed: #{failed.join(", ")}") unless failed.empty?
