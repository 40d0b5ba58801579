# frozen_string_literal: true

require "json"

# Traces pieces of code, all in one process of their own: calls stay slower there afterwards. Goes with Commands.
module Traces
  PROGRAM = <<~RUBY
    require "json"
    require "rperf"

    # The paths of a profile, from the root, with how often what they end in was called; not those of deep recursion.
    def paths(profile, value)
      stack = []
      rows = profile.tree(least: 0, value:).select { |row| row[:depth] < 60 }
      rows.to_h do |row|
        stack = stack.take(row[:depth]) << row[:name]
        [stack.join(" > "), row[:self]]
      end
    end

    def traced(calls, &)
      profile = Rperf.trace(calls:, warn: false, &)
      ["calls", "block_calls"].to_h do |value|
        totals = profile.top(value:, sort: :total).to_h { |row| [row[:name], row[:self]] }
        [value, { totals:, paths: paths(profile, value) }]
      end
    end

    %<setup>s

    results = {}
    %<cases>s
    puts JSON.generate(results)
  RUBY

  # What was counted in one piece of code.
  Counted = Struct.new(:data) do
    # How often a method was called; nil if it isn't in the profile.
    def calls(name) = data.dig("calls", "totals", name)
    def block_calls(name) = data.dig("block_calls", "totals", name)

    # Calls by the callers, from the first of these names on: "a > b" => 3.
    def below(first)
      paths = data.dig("calls", "paths").select { |path, calls| path.include?(first) && calls.positive? }
      paths.transform_keys { |path| path[path.index(first)..] }
    end
  end

  # @param setup [String] definitions
  # @param pieces [Hash{Symbol => String}] code by a name
  # @return [Hash{Symbol => Counted}]
  def trace_pieces(setup, pieces, calls: "ruby")
    cases = pieces.map { |name, code| "results[#{name.name.inspect}] = traced(:#{calls.inspect}) { #{code} }" }
    program = write_file("pieces.rb", format(PROGRAM, setup:, cases: cases.join("\n")))
    # A stack that overflows soon.
    env = { "RUBY_THREAD_VM_STACK_SIZE" => "200000" }
    outcome = run(ruby, "-I#{File.join(Commands::ROOT, "lib")}", program, env:)
    raise outcome.stderr unless outcome.status.success?

    JSON.parse(outcome.stdout).transform_keys(&:to_sym).transform_values { |data| Counted.new(data) }
  end
end
