# frozen_string_literal: true

require "fileutils"

# The commands of docs/guide/tutorial.md, in its order.
RSpec.describe "docs/guide/tutorial.md" do
  include Guide

  root = Commands::ROOT
  commands = PrintedCommands.blocks("docs/guide/tutorial.md").flat_map(&:commands) - ["echo $?"]

  it "has commands that say what it says" do
    FileUtils.cp(File.join(root, "examples", "orders.rb"), directory)
    expect(commands.first(2)).to eq(["rperf record -m wall ruby orders.rb", "rperf report"])
    outputs = commands.to_h do |command|
      # Whether runs on a busy machine differ beyond the noise is not for this spec to say.
      [command, type("#{command}#{" || [ $? -eq 3 ]" if command.include?("--fail-above")}").stdout]
    end
    expect(outputs["rperf report --top -n 5"]).to match(/ms +\d.* Array#include\? \(<C method>\)$/)
    expect(outputs["rperf report --callers 'Array#include?'"]).to match(/Blocklist#blocked\? .*  line 27$/)
    expect(outputs["rperf report --annotate 'Blocklist#blocked?'"]).to include("27      @customers.include?(customer)")
    expect(outputs["rperf report --top -n 3 --focus Bill"]).to include(", of which ", " are left")
    expect(outputs.values.last(2)).to all(match(/, mean of 5 runs, .*\(array\.1\.data/))
  end
end
