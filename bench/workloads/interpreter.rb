# frozen_string_literal: true

# CPU-bound Ruby of real size: an interpreter for a small language (scanner,
# parser, tree of nodes, scopes) that runs four programs in it. Stacks are 20 to
# 150 frames deep and change all the time; there is some garbage, and no waiting.

module Interpreter
  Token = Struct.new(:kind, :text)

  # Cuts source text into tokens.
  class Scanner
    RULES = {
      space: /\s+|#[^\n]*/, number: /\d+/, string: /"[^"]*"/, name: /[a-z_]\w*/,
      operator: %r{==|!=|<=|>=|[-+*/%<>=(){}\[\],;]}
    }.freeze
    KEYWORDS = %w[fun let if else while return].freeze

    def initialize(source)
      @source = source
      @position = 0
    end

    def tokens
      result = []
      while @position < @source.size
        token = next_token
        result << token unless token.kind == :space
      end
      result << Token.new(:end, "")
    end

    private

    def next_token
      RULES.each do |kind, rule|
        match = rule.match(@source, @position)
        next if match.nil? || match.begin(0) != @position

        @position = match.end(0)
        return Token.new(KEYWORDS.include?(match[0]) ? :keyword : kind, match[0])
      end
      raise ArgumentError, "can't read #{@source[@position, 10].inspect}"
    end
  end

  # The values of names, innermost first.
  class Scope
    def initialize(outer = nil)
      @outer = outer
      @values = {}
    end

    def declare(name, value) = @values[name] = value

    def read(name)
      @values.fetch(name) { @outer ? @outer.read(name) : raise(NameError, "no #{name}") }
    end

    def assign(name, value)
      if @values.key?(name) || @outer.nil?
        @values[name] = value
      else
        @outer.assign(name, value)
      end
    end
  end

  # Leaves a function early.
  class Return < StandardError
    attr_reader :value

    def initialize(value)
      super("return")
      @value = value
    end

    def backtrace = []
  end

  Literal = Struct.new(:value) do
    def run(_scope) = value
  end

  Name = Struct.new(:name) do
    def run(scope) = scope.read(name)
  end

  List = Struct.new(:items) do
    def run(scope) = items.map { |item| item.run(scope) }
  end

  Index = Struct.new(:list, :index) do
    def run(scope) = list.run(scope)[index.run(scope)]
  end

  Binary = Struct.new(:operator, :left, :right) do
    def run(scope)
      left.run(scope).public_send(operator, right.run(scope))
    end
  end

  Assign = Struct.new(:target, :value) do
    def run(scope)
      result = value.run(scope)
      if target.is_a?(Index)
        target.list.run(scope)[target.index.run(scope)] = result
      else
        scope.assign(target.name, result)
      end
    end
  end

  Let = Struct.new(:name, :value) do
    def run(scope) = scope.declare(name, value.run(scope))
  end

  Block = Struct.new(:statements) do
    def run(scope)
      inner = Scope.new(scope)
      statements.reduce(nil) { |_, statement| statement.run(inner) }
    end
  end

  If = Struct.new(:condition, :positive, :negative) do
    def run(scope)
      condition.run(scope) ? positive.run(scope) : negative&.run(scope)
    end
  end

  While = Struct.new(:condition, :body) do
    def run(scope)
      body.run(scope) while condition.run(scope)
    end
  end

  Function = Struct.new(:name, :parameters, :body) do
    def run(scope) = scope.declare(name, ->(arguments) { call(scope, arguments) })

    def call(scope, arguments)
      inner = Scope.new(scope)
      parameters.zip(arguments) { |parameter, argument| inner.declare(parameter, argument) }
      body.run(inner)
    rescue Return => e
      e.value
    end
  end

  Give = Struct.new(:value) do
    def run(scope) = raise Return, value.run(scope)
  end

  Call = Struct.new(:function, :arguments) do
    def run(scope)
      values = arguments.map { |argument| argument.run(scope) }
      function.run(scope).call(values)
    end
  end

  # Makes the tree of nodes, by recursive descent.
  class Parser
    LEVELS = [%w[== !=], %w[< > <= >=], %w[+ -], %w[* / %]].freeze

    def initialize(tokens)
      @tokens = tokens
      @position = 0
    end

    def program
      statements = []
      statements << statement until peek.kind == :end
      Block.new(statements)
    end

    private

    def peek = @tokens[@position]

    def advance
      @position += 1
      @tokens[@position - 1]
    end

    def accept(text)
      peek.text == text && peek.kind != :string ? advance : nil
    end

    def expect(text) = accept(text) || raise(SyntaxError, "#{text} expected, not #{peek.text}")

    def statement
      if accept("fun") then function
      elsif accept("let") then let
      elsif accept("if") then condition
      elsif accept("while") then While.new(group, block)
      elsif accept("return") then Give.new(expression.tap { expect(";") })
      else
        expression.tap { expect(";") }
      end
    end

    def function
      name = advance.text
      expect("(")
      Function.new(name, listed(")") { advance.text }, block)
    end

    def let
      name = advance.text
      expect("=")
      Let.new(name, expression).tap { expect(";") }
    end

    def condition
      test = group
      positive = block
      If.new(test, positive, accept("else") ? block : nil)
    end

    def block
      expect("{")
      statements = []
      statements << statement until accept("}")
      Block.new(statements)
    end

    def group
      expect("(")
      expression.tap { expect(")") }
    end

    def listed(close)
      items = []
      until accept(close)
        items << yield
        accept(",")
      end
      items
    end

    def expression
      left = binary(0)
      accept("=") ? Assign.new(left, expression) : left
    end

    def binary(level)
      return postfix if level == LEVELS.size

      left = binary(level + 1)
      while peek.kind == :operator && LEVELS[level].include?(peek.text)
        left = Binary.new(advance.text.to_sym, left, binary(level + 1))
      end
      left
    end

    def postfix
      node = primary
      loop do
        if accept("(") then node = Call.new(node, listed(")") { expression })
        elsif accept("[") then node = Index.new(node, expression.tap { expect("]") })
        else
          return node
        end
      end
    end

    def primary
      token = advance
      case token.kind
      when :number then Literal.new(token.text.to_i)
      when :string then Literal.new(token.text[1..-2])
      when :name then Name.new(token.text)
      else
        token.text == "[" ? List.new(listed("]") { expression }) : parenthesized(token)
      end
    end

    def parenthesized(token)
      raise SyntaxError, "unexpected #{token.text}" unless token.text == "("

      expression.tap { expect(")") }
    end
  end

  PROGRAMS = {
    recursion: "fun fib(n) { if (n < 2) { return n; } return fib(n - 1) + fib(n - 2); } fib(15);",
    sieve: <<~PROGRAM,
      let marks = fill(1500); let n = 2; let count = 0;
      while (n < 1500) {
        if (marks[n] == 0) {
          count = count + 1;
          let multiple = n * n;
          while (multiple < 1500) { marks[multiple] = 1; multiple = multiple + n; }
        }
        n = n + 1;
      }
      count;
    PROGRAM
    sort: <<~PROGRAM,
      fun merge(a, b) {
        if (size(a) == 0) { return b; }
        if (size(b) == 0) { return a; }
        if (a[0] < b[0]) { return [a[0]] + merge(tail(a), b); }
        return [b[0]] + merge(a, tail(b));
      }
      fun sort(list) {
        if (size(list) < 2) { return list; }
        return merge(sort(half(list, 0)), sort(half(list, 1)));
      }
      sort(shuffled(24))[0];
    PROGRAM
    words: <<~PROGRAM
      let n = 0; let text = "";
      while (n < 300) { text = text + "word "; if (n % 7 == 0) { text = text + "line "; } n = n + 1; }
      size(text);
    PROGRAM
  }.freeze

  NATIVE = {
    "fill" => ->(arguments) { Array.new(arguments[0], 0) },
    "size" => ->(arguments) { arguments[0].size },
    "tail" => ->(arguments) { arguments[0].drop(1) },
    "half" => ->(arguments) { arguments[0].each_slice((arguments[0].size + 1) / 2).to_a[arguments[1]] },
    "shuffled" => ->(arguments) { (0...arguments[0]).sort_by { |number| (number * 7919) % 101 } }
  }.freeze

  def self.evaluate(source)
    scope = Scope.new
    NATIVE.each { |name, function| scope.declare(name, function) }
    Parser.new(Scanner.new(source).tokens).program.run(scope)
  end
end

WORKLOAD = lambda do |scale|
  (36 * scale).ceil.times do
    Interpreter::PROGRAMS.each_value { |source| Interpreter.evaluate(source) }
  end
end
