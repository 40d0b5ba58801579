# frozen_string_literal: true

# What a trace leaves out, in one process; and the same by the command.
RSpec.describe "What a trace leaves out" do
  files = <<~'RUBY'
    def wrap = inner { yield }
    def inner = yield
  RUBY
  program = <<~'RUBY'
    require "tempfile"
    require File.expand_path("vendor/wrap")

    class Cart
      def self.find = new
      def total = wrap { 2.times { line(3) } }
      def line(left) = left.zero? ? works : line(left - 1)
      def works = Array.new(30) { Object.new }
      def fails(left) = left.zero? ? raise : fails(left - 1)
      define_method(:defined) { works }
    end

    def run
      [Cart.find].each { |cart| cart.total; cart.defined; cart.fails(2) rescue cart.works }
      Fiber.new { Cart.find.total }.resume
      Thread.new { Cart.find.total }.join
    end
    run

    def traced(**)
      profile = Rperf.trace(warn: false, measure: %i[alloc latency], **) { run }
      values = %w[calls block_calls alloc_objects wall overhead].to_h do |value|
        [value, profile.top(value:, sort: :cum).to_h { |row| [row[:name], row[:self]] }]
      end
      stack = []
      paths = profile.tree(least: 0, value: "calls").to_h do |row|
        [(stack = stack.take(row[:depth]) << row[:name]).join(" > "), row[:self]]
      end
      file = Tempfile.create("t")
      profile.save(file.path, format: :json)
      methods = JSON.parse(File.read(file.path))["methods"]
      { values:, paths:, head: profile[:comments] || [], timed: methods.select { |row| row["max_ns"] }.map { |row| row["name"] } }
    end

    all = {
      whole: traced, named: traced(exclude: "Cart#line,Cart.*"), files: traced(exclude: %w[vendor/** Cart#totl]),
      common: traced(exclude_common: true, calls: :all), shallow: traced(depth: 6), all: traced(calls: :all)
    }
    puts JSON.generate(all)
  RUBY

  before(:context) do
    @folder = Dir.mktmpdir
  end
end
