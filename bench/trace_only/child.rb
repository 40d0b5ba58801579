# frozen_string_literal: true

# One measured process: child.rb SEGMENTS REQUESTS [untraced] asks the Rack application for pages, on one thread, in
# segments of so many requests each: first untraced ones, then pairs of an untraced and a traced one, by turns the one
# or the other first; with "untraced" none is traced. Prints as JSON what CPU time the requests took.

require "json"
require "rperf"
require_relative "../rack/app"
require_relative "../support/clock"

# The application and its requests: each segment has the same ones.
class Segments
  PATHS = %w[/api/products /products /api/products].freeze
  TRACED = "Shop.search"

  def initialize(count, requests, is_traced)
    @count = count
    @is_traced = is_traced
    @environments = Array.new(requests) do |number|
      { "PATH_INFO" => PATHS[number % PATHS.size], "QUERY_STRING" => "q=#{number}", "REQUEST_METHOD" => "GET" }
    end
    @switches = { begin: [], end: [] }
    @calls = 0
  end

  # Two pairs at a time, as a session has two segments.
  # @return [Hash] ratios: of the pairs; before, untraced, traced: the fastest times of the requests, added up; calls:
  #   of the traced method in these; begin, end: how long each took; all times in ns
  def run
    30.times { requests }
    before = Array.new(@count) { segment }
    pairs = Array.new(@count.fdiv(2).ceil) do
      first = segment
      traced = traced { Array.new(2) { segment } }
      [[first, traced.first], [segment, traced.last]]
    end.flatten(1)
    untraced, traced = pairs.transpose
    { ratios: pairs.map { |first, second| second.sum.fdiv(first.sum) }, calls: @calls.fdiv(2 * pairs.size),
      before: fastest(before), untraced: fastest(untraced), traced: fastest(traced), **@switches }
  end

  private

  # Compilers begin anew at each switch, so as many requests come before those that are measured.
  def segment
    requests
    GC.start
    requests
  end

  # The CPU time of each.
  def requests
    last = Bench::Clock.thread_cpu
    @environments.map do |environment|
      Shop.call(environment)
      took = Bench::Clock.thread_cpu - last
      last += took
      took
    end
  end

  # Other programs only ever add time.
  def fastest(segments) = segments.transpose.sum(&:min)

  def traced
    return yield unless @is_traced

    started = Bench::Clock.wall
    Rperf.start(mode: :trace, only: TRACED)
    @switches[:begin] << (Bench::Clock.wall - started)
    segments = yield
    started = Bench::Clock.wall
    profile = Rperf.stop
    @switches[:end] << (Bench::Clock.wall - started)
    @calls += profile.top(value: "calls").sum { |row| row[:self] }
    segments
  end
end

count, requests, untraced = ARGV
puts JSON.generate(Segments.new(Integer(count), Integer(requests), untraced.nil?).run)
