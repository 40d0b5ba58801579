# frozen_string_literal: true

require "json"
require "rperf"
require_relative "../support/clock"
require_relative "../support/gap"
require_relative "../support/made_profile"

# deep.rb make|ACTION PATH STACKS DEPTH: makes a profile of deep stacks, or does ACTION with the file. Prints JSON.
module Deep
  # What is timed, after what is not: it gets what that gave.
  ACTIONS = {
    "load" => [->(path) { path }, ->(path) { Rperf.load(path) }],
    "top" => [->(path) { Rperf.load(path) }, ->(profile) { profile.tap(&:top) }],
    "tree" => [->(path) { Rperf.load(path) }, ->(profile) { profile.tap(&:tree) }],
    "samples" => [->(path) { Rperf.load(path) }, ->(profile) { profile.tap { |it| it[:samples] } }]
  }.freeze

  def self.make(path, stacks, depth)
    Rperf.save(path, Bench::MadeProfile.new(stacks:, depth:).to_h)
    {}
  end

  def self.measure(action, path)
    first, second = ACTIONS.fetch(action)
    given = first.call(path)
    GC.start
    without = Bench::Gap.longest { sleep 0.3 }
    profile = took = nil
    gap = Bench::Gap.longest do
      began = Bench::Clock.wall
      profile = second.call(given)
      took = Bench::Clock.wall - began
    end
    { gap:, without:, took:, stacks: profile[:unique_stacks], frames: profile[:unique_frames] }
  end
end

action, path, stacks, depth = ARGV
figures = action == "make" ? Deep.make(path, Integer(stacks), Integer(depth)) : Deep.measure(action, path)
puts JSON.generate(figures)
$stdout.flush
exit!(true)
