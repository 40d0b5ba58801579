# frozen_string_literal: true

# What the VM tells of calls, and what not: each situation with the counts that a reader of the program expects.
RSpec.describe "A trace", vm: true do
  include Traces

  setup = <<~RUBY
    def leaf = 1
    def twice = (leaf; leaf)
    def yields = yield
    def each_of(list) = list.each { |item| yield item }
    def raises = raise(ArgumentError)
    def rescues = (raises rescue leaf)
    def ensures = begin; leaf; ensure; leaf; end
    def throws = throw(:out)
    def returns_from_block = [1, 2, 3].each { |it| return leaf if it == 2 }
    def endless(n) = endless(n + 1) + 1
    def overflows = (begin; endless(0); rescue SystemStackError; leaf; end; leaf)
    def recursive(n) = n.zero? ? 0 : recursive(n - 1)
    def makes_lambda = -> { leaf }
    def tarai(x, y, z) = x <= y ? y : tarai(tarai(x - 1, y, z), tarai(y - 1, z, x), tarai(z - 1, x, y))

    class Thing
      attr_accessor :value

      define_method(:defined) { leaf2 }
      DEFINES = proc { 5 }
      define_method(:named, &DEFINES)
      def initialize = @value = 1
      def leaf2 = 2
      def original = leaf2
      alias other original
      def method_missing(name, *) = name == :missing ? leaf2 : super
      def respond_to_missing?(*) = true
      def self.singleton = 3
    end

    class Derived < Thing
      def original = super
    end

    module Refined
      refine(Integer) { def refined = 4 }
    end
    using Refined
    THING = Thing.new
    PAIR = Struct.new(:one).new(1)
    DERIVED = Derived.new
  RUBY

  # One process for all pieces of a level.
  pieces = {
    calls: "3.times { twice }", blocks: "each_of([1, 2, 3]) { leaf }", procs: "2.times(&:succ); proc { leaf }.call",
    lambda_after_its_maker: "makes_lambda.call", exception: "2.times { rescues }", ensure: "ensures",
    throw: "catch(:out) { throws }; leaf", break: "yields { break }; leaf",
    return_from_block: "returns_from_block; leaf",
    overflow: "overflows; leaf", define_method: "5.times { THING.defined }",
    defining_block: "3.times { THING.named; Thing::DEFINES.call; Thing::DEFINES.call }", missing: "THING.missing",
    struct: "2.times { PAIR.one = PAIR.one }", builtin: "4.times { |it| it.zero? }",
    alias: "THING.other", super: "DERIVED.original", refinement: "1.refined", send: "send(:leaf); __send__(:leaf)",
    accessors: "3.times { THING.value = THING.value }", recursion: "recursive(9)", singleton: "Thing.singleton",
    class_body: "class Reopened; leaf; end", eval: "eval('leaf'); instance_eval('leaf')", new: "2.times { Thing.new }",
    from_c: "[3, 1, 2].sort_by { |it| leaf; it }", tarai: "tarai(4, 2, 0)",
    fibers: "Fiber.new { leaf; Fiber.yield; leaf }.then { |it| leaf; it.resume; leaf; it.resume }",
    enumerator: "e = Enumerator.new { |y| 3.times { leaf; y << 1 } }; e.next; leaf; e.next",
    threads: "Array.new(4) { Thread.new { 10.times { leaf; Thread.pass } } }.each(&:join)",
    killed: "thread = Thread.new { leaf; sleep }; Thread.pass until thread.stop?; thread.kill.join; leaf",
    fiber_raise: "f = Fiber.new { leaf; Fiber.yield }; f.resume; (f.raise('x') rescue leaf)",
    trace_point: "TracePoint.new(:call) { recursive(3) }.enable { leaf }",
    collections: "20.times { Class.new { def m = 1 }.new.m; GC.start(full_mark: false) }; GC.compact; leaf"
  }

  def self.counts_for(level, setup, pieces)
    before(:all) do
      Dir.mktmpdir("rperf trace") do |directory|
        @directory = @temporary_directory = directory
        @counted = trace_pieces(setup, pieces, calls: level)
      end
    end
  end

  def of(name) = @counted.fetch(name)

  shared_examples "exact counts" do |level|
    counts_for(level, setup, pieces)

    {
      calls: 6, blocks: 3, procs: 1, lambda_after_its_maker: 1, exception: 2, ensure: 2, throw: 1, break: 1,
      return_from_block: 2, overflow: 3, send: 2, class_body: 1, eval: 2, from_c: 3, fibers: 4, enumerator: 3,
      threads: 40, killed: 2, fiber_raise: 2, trace_point: 1, collections: 1
    }.each do |name, number|
      it "has #{number} calls of a method in: #{pieces.fetch(name)}" do
        expect(of(name).calls("Object#leaf")).to eq(number)
      end
    end

    it "tells calls from calls of blocks" do
      expect(of(:blocks).calls("Object#each_of")).to eq(1)
      expect(of(:blocks).block_calls("block in Object#each_of")).to eq(3)
      expect(of(:lambda_after_its_maker).calls("Object#makes_lambda")).to eq(1)
      expect(of(:lambda_after_its_maker).block_calls("block in Object#makes_lambda")).to eq(1)
    end

    it "has a method that a block defines once a call" do
      expect(of(:define_method).calls("Thing#leaf2")).to eq(5)
      expect(of(:define_method).calls("block in <class:Thing>")).to eq(5)
      expect(of(:define_method).block_calls("block in <class:Thing>").to_i).to eq(0)
    end

    it "has a block that defines a method as a block when it is called as one" do
      expect(of(:defining_block).calls("block in <class:Thing>")).to eq(3)
      expect(of(:defining_block).block_calls("block in <class:Thing>")).to eq(6)
    end

    it "names methods by what runs" do
      expect(of(:missing).calls("Thing#method_missing")).to eq(1)
      expect(of(:alias).calls("Thing#original")).to eq(1)
      expect([of(:super).calls("Derived#original"), of(:super).calls("Thing#original")]).to eq([1, 1])
      expect(of(:singleton).calls("Thing.singleton")).to eq(1)
      expect(of(:new).calls("Thing#initialize")).to eq(2)
      expect(of(:recursion).calls("Object#recursive")).to eq(10)
      expect(of(:refinement).data.dig("calls", "totals").keys.grep(/refined/).size).to eq(1)
    end

    it "has the calls of recursion by their callers" do
      below = of(:tarai).below("Object#tarai").select { |path, _| path.end_with?("Object#tarai") }
      expect([below.values.sum, of(:tarai).calls("Object#tarai")]).to eq([53, 53])
      expect(below.size).to be > 4
      expect(of(:recursion).below("Object#recursive").size).to be >= 10
    end
  end

  describe "at level ruby" do
    it_behaves_like "exact counts", "ruby"

    it "has C methods as callers, without calls" do
      counted, builtin = trace_pieces(setup, { sort: "[3, 1].sort_by { leaf }", **pieces.slice(:builtin) })
                         .values_at(:sort, :builtin)
      expect(counted.calls("Enumerable#sort_by") || counted.calls("Array#sort_by")).to eq(0)
      expect(counted.below("sort_by").keys).to include(a_string_ending_with("Object#leaf"))
      # The VM runs it without a call.
      expect(builtin.calls("Integer#zero?").to_i).to eq(0)
    end
  end

  describe "at level all" do
    it_behaves_like "exact counts", "all"

    it "counts methods of C, operators and accessors" do
      counted = trace_pieces(setup, pieces.slice(:accessors, :struct, :builtin, :recursion, :throw), calls: "all")
      expect([counted[:accessors].calls("Thing#value"), counted[:accessors].calls("Thing#value=")]).to eq([3, 3])
      members = counted[:struct].data.dig("calls", "totals").select { |name, _| name.match?(/#one=?\z/) }
      expect(members.values).to eq([2, 2])
      expect(counted[:builtin].calls("Integer#zero?")).to eq(4)
      expect(counted[:recursion].calls("Integer#-")).to eq(9)
      expect([counted[:throw].calls("Kernel#catch"), counted[:throw].calls("Kernel#throw")]).to eq([1, 1])
    end
  end

  %w[count count-all].each do |level|
    describe "at level #{level}" do
      it_behaves_like "exact counts", level
    end
  end
end
