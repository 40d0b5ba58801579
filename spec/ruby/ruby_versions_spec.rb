# frozen_string_literal: true

# What is said of Ruby's versions stands in one file, and on a page that agrees with it.
RSpec.describe "docs/internals/ruby-versions.md" do
  root = Commands::ROOT
  source = File.read(File.join(root, "ext/rperf/src/ruby/version.rs"))
  page = File.read(File.join(root, "docs/internals/ruby-versions.md"))

  # { name => [versions, place in Ruby's source] } of all that has both.
  def facts(source)
    comments = source.scan(%r{((?:^ *///.*\n)+)(?:#\[.*\n)*(?:pub )?(?:const )?fn (\w+)})
    told = comments.filter_map do |comment, name|
      text = comment.gsub(%r{^ */// ?}, "").split("\n\n").last.tr("\n", " ").strip
      places = text.match(/\AVersions: (.+?)\. Source: (.+)\.\z/)&.captures
      [name, places] if places
    end
    told.to_h
  end

  def rows(page, title)
    table = page[/^## #{title}\n.*?^(\|.*?)\n\n/m, 1] or raise "no table #{title}"
    table.lines.drop(2).map { |line| line.split("|").map(&:strip).drop(1) }
  end

  it "has each fact of version.rs, with its versions and its place in Ruby's source" do
    listed = rows(page, "The facts").to_h { |name, versions, place| [name.delete("`"), [versions, place]] }
    expect(listed.size).to be > 5
    expect(listed).to eq(facts(source))
  end

  it "knows all functions that ask for the version" do
    functions = source.scan(/^( *)(?:pub )?fn (\w+)\([^)]*\)[^{]*\{\n(.*?)^\1\}/m)
    names = functions.filter_map { |_, name, body| name if body.match?(/\b(?:running|known|loaded)\b/) }
    # The answers themselves, and a message that names the version.
    others = %w[running known note_on_other_ractors]
    expect(names).to include(*others)
    expect(names - others - facts(source).keys).to eq([])
  end

  it "is left out by what compares the version by itself: only abi.rs, which refuses others than it was built for" do
    asking = Dir[File.join(root, "ext/rperf/src/**/*.rs")].select { |file| File.read(file).include?("version::loaded") }
    expect(asking.map { |file| File.basename(file) }).to eq(["abi.rs"])
  end

  it "agrees with the guide on the versions that rperf knows" do
    known = source[/^const KNOWN: .*? = \[(.*?)\];/m, 1].scan(/\((\d+), (\d+)\)/).map { |numbers| numbers.join(".") }
    told = File.read(File.join(root, "docs/guide/limits.md"))[/^- rperf knows Ruby ([\d., and]+)\. On/, 1]
    expect(told.to_s.split(/, | and /)).to eq(known)
  end

  it "is the only place for them: no other file of ext and crates knows a version of Ruby" do
    files = Dir[File.join(root, "{ext,crates}/**/*.rs")].reject { |file| file.end_with?("ruby/version.rs") }
    expect(files.size).to be > 200
    versions = /\bRuby \d|(?:<|>|==|>=|<=) *\([34], \d\)|\bruby_gte|\b(?:in|on|of|from|until) [34]\.\d\b(?![%\d])/
    knowing = files.flat_map do |file|
      # Tests, which end files or have files of their own, make up versions.
      text = file.match?(%r{/tests?[/.]}) ? "" : File.read(file).split(/^#\[cfg\((?:all\()?test/).first
      text.lines.grep(versions).map { |line| "#{file}: #{line.strip}" }
    end
    expect(knowing).to eq([])
  end
end
