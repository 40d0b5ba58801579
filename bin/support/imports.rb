# frozen_string_literal: true

# imports.rb [ROOT]: fails if the files of a crate, of the extension or of lib/ use each
# other in a circle, or a lower floor uses a higher one; names each circle with its places.

require_relative "imports/graph"
require_relative "imports/ruby"
require_relative "imports/rust"

module Imports
  # From the ground up, by folder of the source tree.
  RUST_FLOORS = { "vm" => %w[state recording hooks api] }.freeze
  RUBY_FLOORS = {}.freeze

  module_function

  def graphs(root)
    crates = Dir.glob("{crates/*,ext/*}/src", base: root).sort
    rust = crates.map { |folder| Graph.new(folder, RustCrate.new(root, folder).uses, RUST_FLOORS) }
    [*rust, Graph.new("lib", RubyLibrary.new(root, "lib").uses, RUBY_FLOORS)]
  end

  def problems(root) = graphs(root).flat_map(&:problems)
end

if $PROGRAM_NAME == __FILE__
  problems = Imports.problems(ARGV.fetch(0, "."))
  puts problems
  exit problems.empty?
end
