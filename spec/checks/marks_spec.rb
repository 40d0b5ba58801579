# frozen_string_literal: true

# Each page about another system has a table of the examples that are left out there. It has all files that have some.
RSpec.describe "the examples that are left out on another system" do
  # Files of specs as the pages name them: "api/api".
  def marked(mark)
    Dir.glob("**/*_spec.rb", base: File.join(Commands::ROOT, "spec")).filter_map do |path|
      code = File.readlines(File.join(Commands::ROOT, "spec", path)).grep_v(/^\s*#/)
      next if code.grep(/\b#{mark}: false\b|\*\*Faults::MARKS\b/).empty?

      path.delete_suffix("_spec.rb").sub(%r{\Afaults/.*}, "faults/*")
    end.uniq
  end

  def listed(page)
    section = File.read(File.join(Commands::ROOT, "docs/internals", page))[/^## What is marked\n(.*?)^## /m, 1]
    section.scan(/^\| (.*?) \|/).flatten.flat_map { |cell| cell.scan(/`([^`]+)`/).flatten }.uniq
  end

  { "emulated" => "arm64.md", "musl" => "musl.md" }.each do |mark, page|
    it "are in #{page} if they are '#{mark}: false'" do
      expect(listed(page)).to match_array(marked(mark))
    end
  end
end
