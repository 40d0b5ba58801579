# frozen_string_literal: true

# imports.rb [ROOT]: fails if the files of a crate, of the extension or of lib/ use each
# other in a circle, or a lower floor uses a higher one; names each circle with its places.

require_relative "imports/graph"
require_relative "imports/ruby"
require_relative "imports/rust"

# What is checked; how is in imports/.
module Imports
  # Parts of directories, floor by floor from the ground up; "" is the crate itself.
  EXTENSION_FLOORS = {
    "" => [
      %w[abi interrupts message ruby text variables without_gvl], %w[profile settings accounts], %w[running],
      %w[recording], %w[probes], %w[sampling], %w[tracing], %w[labels], %w[fork],
      %w[native push made_session], %w[port whole], %w[.]
    ],
    "probes" => [%w[sampling tracing], %w[.]]
  }.freeze
  RUBY_FLOORS = {
    "rperf" => [
      %w[names original version errors message stderr argument builtin deferred inert wrapped], %w[processes web ops],
      %w[session live],
      %w[hooks], %w[api autostart], %w[.],
      %w[middleware rack viewer pprof_endpoint sidekiq active_job suite rspec minitest cli launched]
    ]
  }.freeze

  module_function

  def graphs(root)
    crates = Dir.glob("{crates/*,ext/*}/src", base: root).sort
    rust = crates.map do |directory|
      graph(RustCrate.new(root, directory), directory.start_with?("ext") ? EXTENSION_FLOORS : {})
    end
    [*rust, graph(RubyLibrary.new(root, "lib"), RUBY_FLOORS)]
  end

  def graph(sources, floors) = Graph.new(sources.directory, sources.files, sources.uses, floors)
  def problems(root) = graphs(root).flat_map(&:problems)
end

if $PROGRAM_NAME == __FILE__
  problems = Imports.problems(ARGV.fetch(0, "."))
  puts problems
  exit problems.empty?
end
