# frozen_string_literal: true

require_relative "../support/compilers"

# The stack that a trace keeps is the VM's, whatever a program does: they are compared at events by chance. With
# RPERF_LONG=1 (bin/test --long) a hundred times as often.
RSpec.describe "The stack of a trace", vm: true do
  turns = Commands::LONG ? 2_000 : 20

  def compare(level, turns, *flags, env: {})
    seed = Random.new_seed % 1_000_000
    program = File.join(__dir__, "../torture", "calls.rb")
    # A stack that overflows soon.
    env = { "RUBY_THREAD_VM_STACK_SIZE" => "200000", **env }
    command = [ruby, "-W0", *flags, "-I#{Commands::ROOT}/lib", program, level, turns.to_s, seed.to_s]
    outcome = run(*command, env:, limit: Commands::TIME_LIMIT + turns)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""]), "seed #{seed}: #{outcome.stderr}"
    line = /\ATraced: process \d+: \d{4,} stacks compared, 0 unequal\n\z/
    expect(outcome.stdout).to match(line), "seed #{seed}:\n#{outcome.stdout}"
  end

  %w[ruby all].each do |level|
    it("is the VM's at level #{level}") { compare(level, turns) }
  end

  it "is the VM's where threads share native ones" do
    compare("ruby", turns, env: { "RUBY_MN_THREADS" => "1" })
  end

  Compilers::FLAGS.slice("YJIT").each_value do |flag|
    it("is the VM's under YJIT") { compare("ruby", turns, flag) }
  end
end
