# frozen_string_literal: true

require "json"
require "rperf"
require_relative "../support/clock"

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
  # Far shorter than what is looked for.
  STEP = 0.0001
  NATIVE = Rperf.const_get(:Native)
  # What is timed, after what is not.
  ACTIONS = {
    "snapshot" => [-> {}, ->(_) { NATIVE.snapshot(false) }],
    "snapshot again" => [-> { NATIVE.snapshot(false) }, ->(_) { NATIVE.snapshot(false) }],
    "clear" => [-> {}, ->(_) { NATIVE.snapshot(true) }],
    "stop" => [-> {}, ->(_) { NATIVE.stop }],
    "Hash" => [-> { NATIVE.snapshot(true) }, ->(profile) { profile.to_h }]
  }.freeze

  class << self
    # Methods in many files, as in a large application. Each calls the next one on the way.
    def define
      METHODS.times.each_slice(METHODS_PER_FILE) do |numbers|
        methods = numbers.map do |number|
          "def self.method_#{number}(way, at) = (name = way[at]) ? __send__(name, way, at + 1) : sleep(#{STEP})"
        end
        path = "app/file_#{numbers.first / METHODS_PER_FILE}.rb"
        eval("module Stacks::Application\n#{methods.join("\n")}\nend", TOPLEVEL_BINDING, path)
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
      left = stacks
      fillers = Array.new([FILLERS, stacks].min) do |seed|
        Thread.new do
          random = Random.new(seed)
          way = way(random, DEPTH)
          while (left -= 1) >= 0
            way = way.first(random.rand(DEPTH))
            way.concat(way(random, DEPTH - way.size, NUMBERS.fetch(way.last, 0)))
            Application.method_0(way, 0)
          end
        end
      end
      fillers.each(&:join)
    end

    # Does the block, and looks meanwhile how long a thread that sleeps for a moment at a time can't go on.
    # @return [Integer] the longest gap, in ns
    def longest_gap
      over = false
      longest = 0
      watcher = Thread.new do
        last = Bench::Clock.wall
        until over
          sleep STEP
          now = Bench::Clock.wall
          longest = now - last if now - last > longest
          last = now
        end
      end
      Thread.pass until watcher.stop?
      yield
      over = true
      watcher.join
      longest
    end
  end
end

action, stacks, threads = ARGV
Stacks.define
blocked = Array.new(Integer(threads)) { Thread.new { sleep } }
Thread.pass until blocked.all?(&:stop?)
Rperf.start(mode: :wall, frequency: 10_000)
Stacks.fill(Integer(stacks))
first, second = Stacks::ACTIONS.fetch(action)
given = first.call
GC.start
without = Stacks.longest_gap { sleep 0.3 }
profile = took = nil
gap = Stacks.longest_gap do
  began = Bench::Clock.wall
  profile = second.call(given)
  took = Bench::Clock.wall - began
end
profile = profile.to_h
puts JSON.generate(gap:, without:, took:, stacks: profile[:unique_stacks], frames: profile[:unique_frames])
$stdout.flush
exit!
