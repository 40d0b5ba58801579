# frozen_string_literal: true

# Each situation in which the VM tells of frames in a way of its own: with all calls, by their callers. The tree is the
# same at all levels. "situation" calls what it is about in a block, and a method after it: if a return got lost, that
# call would be elsewhere.
RSpec.describe "The tree of a trace" do
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
    DERIVED = Derived.new
  RUBY

  # What runs in the block, and its calls by their callers; all begin with the situation itself.
  rows = {
    "an exception that passes methods of C" =>
      ["through_c", { "through_c" => 1, "through_c > Array#each > through_c > raises" => 1,
                      "through_c > through_c > leaf" => 1 }],
    "an ensure clause that an exception runs" =>
      ["(ensures rescue 1)", { "ensures" => 1, "ensures > raises" => 1, "ensures > ensures > leaf" => 1 }],
    "throw" =>
      ["catch(:out) { thrown(1) }", { "Kernel#catch > thrown" => 1,
                                      "Kernel#catch > thrown > Array#each > thrown > thrown" => 1 }],
    "break" => ["breaks", { "breaks" => 1, "breaks > Array#each > breaks > leaf" => 1 }],
    "a return from a block" => ["returns", { "returns" => 1, "returns > Array#each > returns > leaf" => 1 }],
    "retry, which is no call" => ["retries", { "retries" => 1, "retries > leaf" => 3, "retries > raises" => 2 }],
    "a stack overflow" => ["overflows", { "overflows" => 1, "overflows > overflows > leaf" => 1,
                                          "overflows > leaf" => 1 }],
    "a method that a block defines" => ["2.times { THING.defined(1) }", { "Integer#times > defined" => 2,
                                                                          "Integer#times > defined > leaf" => 2 }],
    "a tail call" => ["Tail.odd(3)", { "Tail.odd" => 2, "Tail.even" => 2, "Tail.even > leaf" => 0, "leaf" => 1 }],
    "the body of a file" => ["load('./loaded.rb')", { "Kernel#load > body > leaf" => 1,
                                                      "Kernel#load > body > Array#each > leaf" => 1 }],
    "eval" => ["eval('leaf')", { "Kernel#eval > leaf" => 1 }],
    "instance_eval" => ["THING.instance_eval { plain }",
                        { "BasicObject#instance_eval > Thing#plain" => 1,
                          "BasicObject#instance_eval > Thing#plain > leaf" => 1 }],
    "a block of C" => ["enumerates", { "enumerates" => 1 }],
    "send, and a method as a block" => ["(send(:leaf); __send__(:leaf); [1].each(&method(:loops)) if false)",
                                        { "leaf" => 2 }],
    "a symbol as a block" => ["[THING].map(&:plain)", { "Array#map > Thing#plain" => 1,
                                                        "Array#map > Thing#plain > leaf" => 1 }],
    "Ruby's own methods of Ruby" => ["loops", { "loops" => 1, "loops > Integer#times > loops > leaf" => 2,
                                                "loops > Kernel#tap > loops > leaf" => 1,
                                                "loops > Kernel#loop > loops > leaf" => 1 }],
    "Class#new" => ["Thing.new", { "Thing#initialize" => 1, "Thing#initialize > leaf" => 1 }],
    "a method that C calls" => ["[THING].include?(1)", { "Array#include? > Thing#==" => 1,
                                                         "Array#include? > Thing#== > leaf" => 1 }],
    "super" => ["DERIVED.plain", { "Derived#plain" => 1, "Derived#plain > Thing#plain" => 1,
                                   "Derived#plain > Thing#plain > leaf" => 1 }],
    "alias" => ["THING.other", { "Thing#plain" => 1, "Thing#plain > leaf" => 1 }],
    "a refinement" => ["1.refined", { "refined" => 1, "refined > leaf" => 1 }],
    "method_missing" => ["THING.missing", { "Thing#method_missing" => 1, "Thing#method_missing > leaf" => 1 }],
    "the body of a class" => ["class Reopened; leaf; end", { "class > leaf" => 1 }],
    "a handler of a TracePoint" => ["TracePoint.new(:call) { loops }.enable { yields { leaf } }", { "yields" => 1 }],
    "a fiber" => ["f = Fiber.new { situation { leaf; Fiber.yield; leaf } }; f.resume; leaf; f.resume", {}],
    "a fiber that is raised in" => ["f = Fiber.new { situation { leaf; Fiber.yield } }; f.resume; (f.raise('') rescue leaf)", {}],
    "a thread that is killed" => ["t = Thread.new { situation { leaf; sleep } }; Thread.pass until t.stop?; t.kill.join", {}]
  }

  it "shows" do
    pieces = rows.to_h { |name, (code)| [name.to_sym, "situation { #{code} }"] }
    %w[ruby all count count-all].each do |level|
      counted = trace_pieces(setup, pieces, calls: level)
      rows.each_key do |name|
        puts "#{level}: #{name}"
        counted[name.to_sym].below("Object#situation").each { |k, v| puts "    #{v} #{k}" if v > 0 }
      end
    end
  end
end
