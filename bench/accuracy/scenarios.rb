# frozen_string_literal: true

require_relative "call_ratios"
require_relative "c_methods"
require_relative "hidden_leaf"
require_relative "known_durations"
require_relative "last_calls"
require_relative "lines"
require_relative "locked"
require_relative "loop_and_sort"
require_relative "many_threads"
require_relative "new_threads"
require_relative "ractors"
require_relative "short_calls"
require_relative "slices"
require_relative "web_actions"

module Accuracy
  # By name.
  SCENARIOS = {
    "ruby-busy" => KnownDurations.new(%w[ruby_busy]),
    "c-busy" => KnownDurations.new(%w[c_busy]),
    "c-sleep-gvl" => KnownDurations.new(%w[c_sleep_gvl]),
    "c-sleep-nogvl" => KnownDurations.new(%w[c_sleep_nogvl]),
    "mixed" => KnownDurations.new(KnownDurations::BODIES.keys),
    "call-ratios" => CallRatios.new,
    "slices-300us" => Slices.new(300),
    "slices-3ms" => Slices.new(3000),
    "locked" => Locked.new,
    "short-calls" => ShortCalls.new,
    **Loops::CCalls::KINDS.keys.to_h { |kind| ["c-methods-#{kind}", CMethods.calls_of(kind)] },
    "c-methods-hash-sort-by" => CMethods.new(CMethods::HASH_SORT_BY),
    "c-methods-nested" => CMethods.new(CMethods::NESTED),
    "c-methods-mixed" => CMethods.mixed,
    "lines-loops" => Lines.new(:loops),
    "lines-operations" => Lines.new(:operations),
    "lines-ruby-calls" => Lines.new(:ruby_calls),
    "lines-c-calls" => Lines.new(:c_calls),
    "straight-line" => LastCalls.new(%w[straight_line]),
    "last-calls" => LastCalls.new(%w[arithmetic counting c_calls blocks variables]),
    "loop-and-sort" => LoopAndSort.new,
    **HiddenLeaf::WAYS.keys.to_h { |way| ["hidden-leaf-#{way}", HiddenLeaf.new(way)] },
    "threads-20ms" => NewThreads.new(20),
    "threads-1ms" => NewThreads.new(1),
    "ractors-2" => Ractors.new(2),
    "ractors-4" => Ractors.new(4),
    "many-threads" => ManyThreads.new,
    "web-puma" => WebActions.new(Web::PumaServer),
    "web-sockets" => WebActions.new(Web::Sockets)
  }.freeze
end
