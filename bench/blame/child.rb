# frozen_string_literal: true

# child.rb THREADS SECONDS: runs these threads, a JSON object of names with the ms for which each runs and sleeps in
# turns, with blame measured. Prints as JSON what they have noted, and what is told of waits and blame, in ns.

require "json"
require "rperf"
require_relative "../support/clock"

# A thread that notes what it does.
class Noted
  # Whoever hasn't seen the clock for longer didn't run meanwhile.
  GAP = 200_000

  attr_reader :name

  def initialize(name, run_ms, sleep_ms)
    @name = name
    @run_ns = (run_ms * 1e6).to_i
    @sleep_ns = (sleep_ms * 1e6).to_i
    @runs = []
    @wants = []
  end

  def start(ends)
    Thread.new do
      Rperf.label(thread: @name) do
        ready = Bench::Clock.wall
        while ready < ends
          run
          @wants << [ready, Bench::Clock.wall]
          ready = rest
        end
      end
    end
  end

  def notes = { runs: @runs, wants: @wants }

  private

  # Other threads may run meanwhile, where it takes longer than a time slice.
  def run
    first = from = last = Bench::Clock.wall
    while last - first < @run_ns
      now = Bench::Clock.wall
      if now - last > GAP
        @runs << [from, last]
        from = now
      end
      last = now
    end
    @runs << [from, last]
  end

  # @return [Integer] when it wants to run again
  def rest
    slept = Bench::Clock.wall
    sleep(@sleep_ns / 1e9) if @sleep_ns.positive?
    slept + @sleep_ns
  end
end

threads = JSON.parse(ARGV.fetch(0)).map { |name, times| Noted.new(name, *times) }
seconds = Float(ARGV.fetch(1))
# The arrays grow without a collection.
GC.disable
profile = Rperf.start(mode: :wall, frequency: 1000, measure: :blame) do
  ends = Bench::Clock.wall + (seconds * 1e9).to_i
  threads.map { |it| it.start(ends) }.each(&:join)
end
rows = ->(value, by) { profile.top(value:, by:, idle: true, limit: nil).to_h { |row| row.values_at(:name, :self) } }
puts JSON.generate(notes: threads.to_h { |it| [it.name, it.notes] }, waits: rows["wall", :state].fetch("GVL wait", 0),
                   blame: rows["gvl_blame", "label:thread"])
