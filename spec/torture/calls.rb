# frozen_string_literal: true

# The program of trace_stacks_spec.rb: frames come and go in all ways that Ruby has, in random order, while each stack
# that rperf keeps is compared with the VM's now and then. Prints what the comparisons have found.
#
#   ruby calls.rb LEVEL TURNS SEED

require "rperf"
require "tempfile"
require "timeout"

LOADED = Tempfile.create(["loaded", ".rb"]).tap do |file|
  file.write("Ways.new.plain(3)\n[1, 2].each { |it| Ways.new.plain(it) }\ndef loaded(n) = Ways.new.plain(n)\n" \
             "begin\n  Ways.new.fails(2)\nrescue ArgumentError\n  loaded(1)\nensure\n  loaded(2)\nend\n")
  file.close
end

TAIL_CALLS = <<~RUBY
  module TailCalls
    def self.odd(n) = n.zero? ? Ways.new.plain(1) : even(n - 1)
    def self.even(n) = n.zero? ? Ways.new.plain(2) : odd(n - 1)
  end
RUBY
options = { tailcall_optimization: true, trace_instruction: false }
RubyVM::InstructionSequence.new(TAIL_CALLS, "tail_calls.rb", "tail_calls.rb", 1, **options).eval

module Refined
  refine(Integer) { def twice = [self, self].sum { |it| Ways.new.plain(it) } }
end
using Refined

module Before
  def prepended(n) = super(n) { plain(n) }
end

# One method for each way, as short as can be: two dozen of them shall be read at one look.
# rubocop:disable Lint/BinaryOperatorWithIdenticalOperands, Style/EvalWithLocation, Style/LambdaCall
# rubocop:disable Style/RescueModifier, Style/Semicolon
class Ways
  prepend Before

  attr_accessor :value

  define_method(:defined) { |n| n.times { |it| return plain(it) if it == 2 } }
  define_method(:defined_with_method, instance_method(:defined))
  def plain(n = 1) = n
  def yields = yield
  def prepended(n) = plain(n) + yield
  def fails(n) = n.zero? ? raise(ArgumentError) : fails(n - 1)
  def throws(n) = n.zero? ? throw(:out, 1) : [n].each { throws(n - 1) }
  def endless(n) = [n].sum { endless(n + 1) } + 1
  def method_missing(name, *rest) = name == :ghost ? rest.sum { plain(_1) } : super
  def respond_to_missing?(name, *) = name == :ghost
  def <=>(other) = plain(object_id <=> other.object_id)
  def ==(other) = plain(1) == 1 && equal?(other)
  def to_s = "way #{plain(1)}"
  def each = [yield(1), [2].each { |it| yield(plain(it)) }]

  include Enumerable

  def rescues(n)
    fails(n)
  rescue ArgumentError
    [plain(n)].each { plain(_1) }
  else
    plain(0)
  ensure
    plain(2)
  end

  def rescues_in_a_rescue(n)
    fails(n)
  rescue ArgumentError
    begin
      plain(1)
      fails(n + 1)
    rescue ArgumentError
      plain(2)
      rescues(1)
    ensure
      [1].each { plain(3) }
    end
    plain(4)
  end

  def raises_in_an_ensure
    begin
      fails(1)
    ensure
      begin
        fails(2)
      rescue ArgumentError
        plain(1)
      end
      yields { plain(2) }
    end
  rescue ArgumentError
    plain(3)
  end

  def retries
    tries = 0
    begin
      tries += 1
      fails(1) if tries < 3
      plain(tries)
    rescue ArgumentError
      plain(1)
      retry
    end
  end

  def overflows
    endless(0)
  rescue SystemStackError
    plain(1)
    [1, 2].map { plain(_1) }
  end

  def overflows_in_an_ensure
    begin
      endless(0)
    ensure
      plain(1)
    end
  rescue SystemStackError
    plain(2)
  end

  def breaks = [3, 1, 2].sort_by { plain(_1) }.each_slice(2).map { |it| it.one? ? (break it) : it.sum { plain(_1) } }
  def leaves_a_block = [1, 2, 3].each_with_index { |it, index| return plain(it) if index == 1 }
  def enumerates = each_with_index.map { |it, index| plain(it + index) } + map { plain(_1) } + each_cons(2).to_a
  def compares = [Ways.new, Ways.new, Ways.new].minmax + [[Ways.new] == [Ways.new]] + [self.class.new == self]
  def hashes = Hash.new { |hash, key| hash[key] = plain(key) }.then { |it| [it[1], it.map { |k, v| plain(k + v) }] }
  def strings = "a-b".gsub(/[ab]/) { plain(1).to_s }.each_char.with_index.map { |char, at| "#{self}#{char}#{at}" }
  def lazy = (1..).lazy.map { plain(_1) }.select(&:even?).first(2)
  def evaluates = [eval("plain(1)"), instance_eval { plain(2) }, instance_exec(3) { plain(_1) }, binding.eval("plain")]
  def sends = [send(:plain, 1), public_send(:plain, 2), __send__(:plain, 3), [5].map(&method(:plain))]
  def procs = [proc { plain(1) }.call, ->(n) { plain(n) }.(2), [:a.to_proc].map { _1.call("x") rescue plain(3) }]
  def makes_classes = Class.new(Ways) { def plain(n) = super(n + 1); define_method(:made) { plain(1) } }.new.made
  def refines = 1.twice
  def tail_calls = TailCalls.odd(9)
  def loads = load(LOADED.path)
  def times_out = (Timeout.timeout(0.003) { loop { plain(1) } } rescue plain(2))
  def fetches = ({}.fetch(1) { |it| plain(it) }) + ([].fetch(9) { plain(2) })
  def traces_points = TracePoint.new(:call) { plain(1) }.enable { fetches }
  def signals = (trap("URG") { plain(1) }.tap { Process.kill("URG", Process.pid); 3.times { plain(2) } })
  def compacts = (GC.compact if GC.respond_to?(:compact)).then { plain(1) }
  def collects = GC.start(full_mark: false)

  def fibers
    fiber = Fiber.new { |n| loop { n = Fiber.yield(rescues(n)) } }
    (1..3).map { fiber.resume(_1) }
    other = Fiber.new { plain(1).then { Fiber.yield }.then { plain(2) } }
    other.resume
    (other.raise(ArgumentError) rescue plain(3))
    fiber.alive? && fiber.kill if fiber.respond_to?(:kill)
  end

  def enumerators
    one = Enumerator.new { |yielder| 3.times { |it| yielder << plain(it) } }
    other = [1, 2].each
    [one.next, other.next, one.next, other.next, (other.next rescue plain(9)), one.peek]
  end

  def throws_over_frames = catch(:out) { throws(4) }

  def threads
    threads = Array.new(3) { |it| Thread.new { 5.times { |n| rescues(n % 3); Thread.pass; fibers if it == 1 } } }
    threads.each(&:join)
    plain(1)
  end

  def ends_threads
    threads = Array.new(2) do
      Thread.new { Thread.handle_interrupt(ArgumentError => :immediate) { loop { rescues(1) } } }
    end
    Thread.pass
    threads.first.kill
    threads.last.report_on_exception = false
    threads.last.raise(IOError)
    threads.each { (_1.join rescue plain(1)) }
  end

  NAMES = instance_methods(false) - %i[
    value value= plain yields fails throws endless each method_missing respond_to_missing? <=> == to_s prepended defined
    defined_with_method rescues rescues_in_a_rescue
  ]
  SELDOM = %i[overflows overflows_in_an_ensure times_out compacts ends_threads].freeze
  ARGUMENTS = { rescues: [3], rescues_in_a_rescue: [2], defined: [4], defined_with_method: [4], ghost: [1, 2] }.freeze

  def self.turn(random, turn)
    names = (NAMES - (turn % 8 == 0 ? [] : SELDOM)).shuffle(random:) + ARGUMENTS.keys
    names.shuffle(random:).each { |name| new.public_send(name, *ARGUMENTS.fetch(name, [])) }
    new.prepended(1) { 2 }
  end
end

# rubocop:enable Lint/BinaryOperatorWithIdenticalOperands, Style/EvalWithLocation, Style/LambdaCall
# rubocop:enable Style/RescueModifier, Style/Semicolon

level, turns, seed = ARGV
random = Random.new(Integer(seed))
Rperf.const_get(:Native).check_traces
# It begins deep in a stack, and ends in another.
begins = -> { [1].each { Rperf.start(mode: :trace, calls: level.to_sym) } }
Ways.new.yields { Ways.new.yields { begins.call } }
Integer(turns).times { |turn| Ways.turn(random, turn) }
profile = Ways.new.yields { Rperf.stop }
File.delete(LOADED.path)
Rperf.save("calls.txt", profile)
puts File.readlines("calls.txt").grep(/^Traced: .*(?:compared|first one)/)
