# frozen_string_literal: true

# Ruby source highlighted by Rouge: regular expressions, tokens, and strings.

require_relative "../../support/gem"
Bench.load_gem("rouge")

SOURCE = File.read(File.expand_path("../../workloads/interpreter.rb", __dir__)).lines.first(150).join.freeze

WORKLOAD = lambda do |scale|
  (20 * scale).ceil.times { Rouge::Formatters::HTML.new.format(Rouge::Lexers::Ruby.new.lex(SOURCE)) }
end
