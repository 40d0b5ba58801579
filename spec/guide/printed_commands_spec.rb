# frozen_string_literal: true

require "fileutils"

# Runs each command and program of the README and the guide as it is printed. A page's blocks run one after the other,
# in a directory that has only app.rb at first; those of recipes also have the programs of examples/recipes. Programs
# have the methods of yours.rb, which stand for the reader's own.
RSpec.describe "What the README and the guide print" do
  include Guide

  tutorial = "docs/guide/tutorial.md"
  # The only line of rperf's that is no complaint.
  wrote = /\Arperf: wrote /

  def add_programs(page)
    programs = %w[app.rb yours.rb].map { |name| "spec/fixtures/guide/#{name}" }
    programs += ["examples/threads.rb", *Dir["examples/recipes/*", base: Commands::ROOT]] if page.include?("recipes")
    programs.each { |path| FileUtils.cp_r(File.join(Commands::ROOT, path), directory) }
  end

  # The outcome of each command of the block, or of its program.
  def run_block(block)
    return block.commands.map { |command| [command, type(command)] } unless block.language == "ruby"

    write_file("program.rb", block.text)
    [["the program", type("ruby -r./yours program.rb")]]
  rescue StandardError => e
    raise "#{block.place}: #{e.message}"
  end

  (PrintedCommands::PAGES - [tutorial]).each do |page|
    blocks = PrintedCommands.to_run(page)
    next if blocks.empty?

    it "works as #{page} has it" do
      add_programs(page)
      blocks.each do |block|
        run_block(block).each do |command, outcome|
          said = "#{block.place}: #{command}: #{outcome.stderr}"
          messages = outcome.messages.grep_v(wrote)
          expect(messages).to be_empty, said
          expect(outcome.stderr).not_to match(/\.rb:\d+:in |warning:/), said
          expect(outcome.stdout).not_to match(/^Showing 0 of |^no .* match/), "#{said}#{outcome.stdout}"
          writes_elsewhere = command.match?(/ (?:-o|record|stat|exec|trace|--html)\b/) || !command.start_with?("rperf ")
          expect(outcome.stdout).not_to be_empty, said unless writes_elsewhere
        end
      end
    end
  end

  it "is either run or says why not, by a reason that is known" do
    PrintedCommands::PAGES.each do |page|
      PrintedCommands.blocks(page).each do |block|
        expect(PrintedCommands::RUN + PrintedCommands::READ).to include(block.language), block.place
        next unless block.reason

        expect(PrintedCommands::REASONS.any? { |known| block.reason.include?(known) }).to be(true), block.place
      end
    end
  end

  it "is found in most pages" do
    run = PrintedCommands::PAGES.select { |page| PrintedCommands.to_run(page).any? }
    expect(run.size).to be >= 18
    expect(PrintedCommands.blocks("README.md").flat_map(&:commands)).to include(start_with("rperf stat ruby app.rb"))
  end
end
