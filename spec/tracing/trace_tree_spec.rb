# frozen_string_literal: true

# Each situation in which the VM tells of frames in a way of its own: with all calls, by their callers. The tree is the
# same at all levels. "situation" calls what it is about in a block, and a method after it: if a return got lost, that
# call would be elsewhere.
RSpec.describe "The tree of a trace", vm: true do
  include Traces

  setup = <<~'RUBY'
    def leaf = 1
    def situation = (yield; leaf)
    def raises = raise(ArgumentError)
    def yields = yield

    def through_c = ([1].each { raises } rescue leaf)
    def ensures = begin; raises; ensure; leaf; end
    def thrown(n) = n.zero? ? throw(:out) : [n].each { thrown(n - 1) }
    def breaks = [1, 2].each { |it| break leaf if it == 2 }
    def returns = [1, 2].each { |it| return leaf if it == 2 }
    def retries(tries = 0) = begin; leaf; raises if (tries += 1) < 3; rescue ArgumentError; retry; end
    def endless(n) = [n].sum { endless(n + 1) } + 1
    def overflows = (begin; endless(0); rescue SystemStackError; leaf; end; leaf)
    def enumerates = [1, 2].each_with_index.map { leaf }
    def loops = (2.times { leaf }; 1.tap { leaf }; loop { leaf; break })

    class Thing
      attr_accessor :value

      define_method(:defined) { |*| leaf }
      DEFINES = proc { leaf }
      define_method(:named, &DEFINES)
      def initialize = @value = leaf
      def plain = leaf
      alias other plain
      def ==(_) = leaf == 1
      def method_missing(name, *) = name == :missing ? leaf : super
      def respond_to_missing?(*) = true
    end

    class Derived < Thing
      def plain = super
    end

    module Refined
      refine(Integer) { def refined = leaf }
    end
    using Refined

    options = { tailcall_optimization: true, trace_instruction: false }
    RubyVM::InstructionSequence.new(<<~TAIL, "tail.rb", "tail.rb", 1, **options).eval
      module Tail
        def self.odd(n) = n == 0 ? leaf : even(n - 1)
        def self.even(n) = n == 0 ? leaf : odd(n - 1)
      end
    TAIL

    File.write("loaded.rb", "leaf\n[1].each { leaf }\n")
    Pair = Struct.new(:one)
    PAIR = Pair.new(1)
    THING = Thing.new
    THINGS = [THING].freeze
    DERIVED = Derived.new
  RUBY

  # What runs in the block, and the calls of the setup's methods in it, by their callers. Blocks are left out of paths.
  rows = {
    "an exception that passes methods of C" =>
      ["through_c", { "through_c" => 1, "through_c > Array#each > block in through_c > raises" => 1,
                      "through_c > through_c > leaf" => 1 }],
    "an ensure clause that an exception runs" =>
      ["(ensures rescue 1)", { "ensures" => 1, "ensures > raises" => 1, "ensures > ensures > leaf" => 1 }],
    "throw" =>
      ["catch(:out) { thrown(1) }", { "Kernel#catch > thrown" => 1,
                                      "Kernel#catch > thrown > Array#each > block in thrown > thrown" => 1 }],
    "break" => ["breaks", { "breaks" => 1, "breaks > Array#each > block in breaks > leaf" => 1 }],
    "a return from a block" => ["returns", { "returns" => 1, "returns > Array#each > block in returns > leaf" => 1 }],
    "a stack overflow" => ["overflows", { "overflows" => 1, "overflows > overflows > leaf" => 1,
                                          "overflows > leaf" => 1 }],
    "a method that a block defines" => ["2.times { THING.defined(1) }",
                                        { "Integer#times > defined" => 2, "Integer#times > defined > leaf" => 2 }],
    "a block that defines a method" =>
      ["2.times { THING.named; Thing::DEFINES.call }", { "Integer#times > defined" => 2,
                                                         "Integer#times > defined > leaf" => 4 }],
    "a tail call" => ["Tail.odd(3)", { "Tail.odd" => 2, "Tail.even" => 2, "leaf" => 1 }],
    "the body of a file" => ["load('./loaded.rb')", { "Kernel#load > <top (required)> > leaf" => 1,
                                                      "Kernel#load > <top (required)> > Array#each > leaf" => 1 }],
    "eval" => ["eval('leaf')", { "Kernel#eval > <compiled> > leaf" => 1 }],
    "instance_eval" => ["THING.instance_eval { plain }", { "BasicObject#instance_eval > Thing#plain" => 1,
                                                           "BasicObject#instance_eval > Thing#plain > leaf" => 1 }],
    "a block of C" =>
      ["enumerates",
       { "enumerates" => 1, "enumerates > Enumerable#map > Enumerator#each > Enumerable#each_with_index > " \
                            "Array#each > block in enumerates > leaf" => 2 }],
    "send" => ["(send(:leaf); __send__(:leaf))", { "leaf" => 2 }],
    "a symbol as a block" => ["[THING].map(&:plain)", { "Array#map > Thing#plain" => 1,
                                                        "Array#map > Thing#plain > leaf" => 1 }],
    "Ruby's own methods of Ruby" =>
      ["loops", { "loops" => 1, "loops > Integer#times > block in loops > leaf" => 2,
                  "loops > Kernel#tap > block in loops > leaf" => 1,
                  "loops > Kernel#loop > block in loops > leaf" => 1 }],
    "Class#new" => ["Thing.new", { "Thing#initialize" => 1, "Thing#initialize > leaf" => 1 }],
    "a method that C calls" => ["THINGS.include?(1)", { "Array#include? > Thing#==" => 1,
                                                        "Array#include? > Thing#== > leaf" => 1 }],
    "super" => ["DERIVED.plain", { "Derived#plain" => 1, "Derived#plain > Thing#plain" => 1,
                                   "Derived#plain > Thing#plain > leaf" => 1 }],
    "alias" => ["THING.other", { "Thing#plain" => 1, "Thing#plain > leaf" => 1 }],
    "a refinement" => ["1.refined", { "refined" => 1, "refined > leaf" => 1 }],
    "method_missing" => ["THING.missing", { "Thing#method_missing" => 1, "Thing#method_missing > leaf" => 1 }],
    "the body of a class" => ["class Reopened; leaf; end", { "<class:Reopened> > leaf" => 1 }],
    "a handler of a TracePoint" =>
      ["TracePoint.new(:call) { loops }.enable { yields { leaf } }",
       { "TracePoint#enable > yields" => 1, "TracePoint#enable > yields > leaf" => 1 }],
    "a fiber" => ["f = Fiber.new { ensures; Fiber.yield } ; (f.resume rescue leaf); leaf; Fiber.new { leaf }.resume",
                  { "clause > leaf" => 1, "leaf" => 1 }],
    "a fiber that is raised in" =>
      ["f = Fiber.new { yields { leaf; Fiber.yield } }; f.resume; (f.raise('') rescue leaf)", { "clause > leaf" => 1 }],
    "a thread that is killed" =>
      ["t = Thread.new { yields { leaf; sleep } }; Thread.pass until t.stop?; t.kill.join; leaf", { "leaf" => 1 }]
  }
  # The calls of the setup's own methods.
  ours = /(?:\A|>\ )(?:leaf|raises|yields|through_c|ensures|thrown|breaks|returns|retries|overflows|enumerates|loops|
            defined|refined|situation|Thing\#[\w=]+|Derived\#plain|Tail\.\w+)\z/x

  # The calls in a piece by their callers. At a level without C methods, blocks of C are shown as those once more; Ruby
  # 4.0 makes objects without Class#new, and has another name for a refinement.
  define_method(:tree_of) do |counted|
    counted.below("Object#situation").each_with_object(Hash.new(0)) do |(path, calls), tree|
      next if path == "Object#situation"

      path = path.delete_prefix("Object#situation > ").gsub(/\bObject#/, "").gsub("block in <class:Thing>", "defined")
                 .gsub(/#<(?:Refinement|#<Class>)>#/, "").gsub("Class#new > ", "")
                 .sub("Array#each > Enumerable#each_with_index > Enumerable#map", "Array#each")
                 .gsub(/rescue in block .*?> > /, "clause > ").gsub(/block .*?> > /, "")
      tree[path] += calls if path.match?(ours)
    end
  end

  it "has no call for a retry, where returns are told" do
    calls = %w[ruby all].map { |level| trace_pieces(setup, { retry: "retries" }, calls: level)[:retry] }
    expect(calls.map { |it| it.calls("Object#retries") }).to eq([1, 1])
    expect(calls.map { |it| it.calls("Object#leaf") }).to eq([3, 3])
  end

  %w[ruby all count count-all].each do |level|
    describe "at level #{level}" do
      it "has each call below its caller" do
        pieces = rows.to_h { |name, (code)| [name.to_sym, "situation { #{code} }"] }
        counted = trace_pieces(setup, pieces, calls: level)
        trees = rows.to_h { |name,| [name, tree_of(counted.fetch(name.to_sym))] }
        # The block's calls, and the one after it.
        expected = rows.transform_values { |_, calls| calls.merge("leaf" => calls.fetch("leaf", 0) + 1) }
        expect(trees).to eq(expected)
      end
    end
  end
end
