# frozen_string_literal: true

# Rules for README, guide and internals as a whole.
RSpec.describe "The documentation" do
  root = Commands::ROOT
  pages = ["README.md", "CONTRIBUTING.md", *Dir["docs/**/*.md", base: root]]
  guide = pages.grep(%r{\Adocs/guide/}) - ["docs/guide/README.md"]

  define_method(:text_of) { |page| File.read(File.join(root, page)) }

  # Without fenced blocks.
  def prose(page) = text_of(page).gsub(/^```.*?^```$/m, "")

  # As GitHub makes them.
  def anchors(page)
    prose(page).scan(/^#+ (.+)$/).map { |(title)| title.downcase.delete("^a-z0-9 _-").tr(" ", "-") }
  end

  it "has a README of at most 1,000 words, with the installation and the first profile near its top" do
    readme = text_of("README.md")
    lines = readme.lines
    expect(readme.split.size).to be <= 1000
    expect(lines.index { |line| line.start_with?("gem install") }).to be < 30
    expect(lines.index { |line| line.start_with?("rperf record ruby app.rb") }).to be < 45
    expect(lines.index { |line| line.start_with?("rperf report") }).to be < 45
    expect(readme).to include("bin/test")
    expect(File.read(File.join(root, ".ci/run"))).to include("bin/test")
  end

  it "has links that lead somewhere" do
    pages.each do |page|
      prose(page).scan(/\]\(([^)\s]+)\)/).flatten.grep_v(/\Ahttps?:/).each do |link|
        path, anchor = link.split("#", 2)
        target = path.empty? ? page : File.join(File.dirname(page), path).delete_prefix("./")
        expect(File.exist?(File.join(root, target))).to be(true), "#{page}: #{link}"
        next unless anchor

        expect(anchors(File.expand_path(target, "/").delete_prefix("/"))).to include(anchor), "#{page}: #{link}"
      end
    end
  end

  it "names specs that are there" do
    pages.each do |page|
      home = page == "docs/internals/faults.md" ? "spec/faults/" : ""
      named = prose(page).scan(%r{`([\w/]+_spec\.rb)`}).flatten
      named.map! { |name| name.include?("/") ? name : "#{home}#{name}" }
      expect(named.reject { |name| File.file?(File.join(root, name)) }).to be_empty, page
    end
  end

  it "has all specs of faults in their page" do
    specs = Dir["*_spec.rb", base: File.join(root, "spec/faults")]
    expect(text_of("docs/internals/faults.md").scan(/`(\w+_spec\.rb)`/).flatten.uniq).to match_array(specs)
  end

  it "has a guide whose pages are questions, all of which its README lists" do
    listed = text_of("docs/guide/README.md").scan(/^\| \[([\w-]+)\]\(\1\.md\) \| (.*) \|$/)
    titles = guide.map { |page| [File.basename(page, ".md"), text_of(page)[/\A# (.*)$/, 1]] }
    expect(listed.map { |name, title| [name, title.delete("`")] }).to match_array(titles)
    expect(titles.map(&:last)).to all(end_with("?"))
    expect(text_of("README.md")).to include("docs/guide/README.md")
  end

  it "has internals that their README lists" do
    internals = pages.grep(%r{\Adocs/internals/}).map { |page| File.basename(page) } - ["README.md"]
    expect(text_of("docs/internals/README.md").scan(/^- \[([\w-]+\.md)\]/).flatten).to match_array(internals)
  end

  it "has lines of at most 100 characters, but for tables and code" do
    pages.each do |page|
      long = prose(page).lines(chomp: true).reject { |line| line.start_with?("|") || line.size <= 100 }
      expect(long).to be_empty, "#{page}: #{long.first}"
    end
  end

  it "has every word of the status file, in the page that says where they are defined" do
    source = File.read(File.join(root, "crates/rperf-session/src/event.rs"))[/\A.*?^impl /m]
    words = source.scan(/(?:const \w+: &str = |^ +\()"([a-z-]+)"/).flatten
    page = text_of("docs/internals/sessions.md")
    expect(words.size).to be >= 13
    expect(page).to include("`crates/rperf-session/src/event.rs`")
    expect(page.scan(/^\| (`.*?`) \|/).flat_map { |(cell)| cell.scan(/`([a-z-]+)`/).flatten }).to match_array(words)
  end

  it "calls the gem, its command and what programs require as lib/rperf/names.rb does, and names the original" do
    names = Rperf::Names
    expect(text_of("README.md")).to include("gem install ./#{names::GEM}-#{Rperf::VERSION}.gem",
                                            "\n#{names::COMMAND} record ruby app.rb", "\nrequire \"#{names::ENTRY}\"\n",
                                            "RubyGems' `#{names::ORIGINAL}` is another project")
    pages.each do |page|
      text = text_of(page)
      versions = text.scan(%r{\b#{names::GEM}-(\d+\.\d+\.\d+)(?=\.gem|/lib/rperf)}).flatten
      commands = text.scan(/^([\w-]*rperf[\w-]*) (?:record|stat|report|diff|top|attach) /).flatten
      expect([versions.uniq - [Rperf::VERSION], commands.uniq - [names::COMMAND]]).to eq([[], []]), page
    end
  end

  it "comes with the gem, which the command is built from" do
    files = Gem::Specification.load(File.join(root, "rperf.gemspec")).files
    expect(files).to include("README.md", *pages.grep(%r{\Adocs/}))
  end
end
