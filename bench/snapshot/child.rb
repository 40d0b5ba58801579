# frozen_string_literal: true

require "json"
require "rperf"
require "tmpdir"
require_relative "../support/clock"
require_relative "../support/gap"

# child.rb ACTION STACKS THREADS: a program that is profiled until its profile has so many stacks, while so many
# further threads are blocked, and what ACTION then does to a thread that wants the GVL all the time. Prints JSON.
module Stacks
  METHODS = 3000
  METHODS_PER_FILE = 12
  NAMES = Array.new(METHODS) { |number| :"method_#{number}" }.freeze
  NUMBERS = NAMES.each_with_index.to_h.freeze
  CALLEES = 5
  DEPTH = 30
  FILLERS = 50
  # Steps of a way that stay as they were when its thread goes on: the stacks of a program have most frames in common.
  # So 100,000 of them make less than a million nodes, which is all that a profile keeps apart.
  KEPT = 20
  # How long a method sleeps where a way ends.
  STEP = 0.0001
  # What is timed, after what is not: it gets what that gave.
  ACTIONS = {
    "snapshot" => [-> {}, ->(_) { Rperf.snapshot }],
    "snapshot again" => [-> { Rperf.snapshot }, ->(_) { Rperf.snapshot }],
    "clear" => [-> {}, ->(_) { Rperf.snapshot(clear: true) }],
    "stop" => [-> {}, ->(_) { Rperf.stop }],
    "top" => [-> { Rperf.snapshot(clear: true) }, ->(profile) { profile.tap(&:top) }],
    "samples" => [-> { Rperf.snapshot(clear: true) }, ->(profile) { profile.tap { |it| it[:samples] } }]
  }.freeze

  class << self
    # Methods in many files, as in a large application. Each calls the next one on the way.
    def define
      Dir.mktmpdir("rperf-bench") do |directory|
        METHODS.times.each_slice(METHODS_PER_FILE) do |numbers|
          path = File.join(directory, "file_#{numbers.first / METHODS_PER_FILE}.rb")
          methods = numbers.map do |number|
            "def self.method_#{number}(way, at) = (name = way[at]) ? __send__(name, way, at + 1) : sleep(#{STEP})"
          end
          File.write(path, "module Stacks::Application\n#{methods.join("\n")}\nend")
          load path
        end
      end
    end

    # A random way of so many steps on from a method: each calls a few others.
    def way(random, steps, number = 0)
      Array.new(steps) do
        number = ((number * 7) + random.rand(CALLEES) + 1) % METHODS
        NAMES[number]
      end
    end

    # Threads that are seen asleep at ever new stacks, until the profile has enough of them.
    def fill(stacks)
      # Each is seen in two states, blocked and waiting for the GVL, which are stacks of their own.
      left = stacks / 2
      fillers = Array.new([FILLERS, stacks].min) do |seed|
        Thread.new do
          random = Random.new(seed)
          way = way(random, DEPTH)
          while (left -= 1) >= 0
            way = way.first(KEPT + random.rand(DEPTH - KEPT))
            way.concat(way(random, DEPTH - way.size, NUMBERS.fetch(way.last, 0)))
            Application.method_0(way, 0)
          end
        end
      end
      fillers.each(&:join)
    end
  end
end

action, stacks, threads = ARGV
Stacks.define
blocked = Array.new(Integer(threads)) { Thread.new { sleep } }
Thread.pass until blocked.all?(&:stop?)
# However much it costs: else it would take fewer samples.
Rperf.start(mode: :wall, frequency: 10_000, max_overhead: 100)
Stacks.fill(Integer(stacks))
first, second = Stacks::ACTIONS.fetch(action)
given = first.call
GC.start
without = Bench::Gap.longest { sleep 0.3 }
profile = took = nil
gap = Bench::Gap.longest do
  began = Bench::Clock.wall
  profile = second.call(given)
  took = Bench::Clock.wall - began
end
puts JSON.generate(gap:, without:, took:, stacks: profile[:unique_stacks], frames: profile[:unique_frames])
$stdout.flush
exit!(true)
