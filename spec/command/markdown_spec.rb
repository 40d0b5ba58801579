# frozen_string_literal: true

# `rperf why` and `rperf report --boot, --tests, --ops, --gc` as Markdown, to paste, as JSON and as text: by name and by
# the extension of a file.
RSpec.describe "Markdown of what isn't about stacks", vm: true do
  app = <<~'RUBY'
    require "rperf/rack"

    class Shop
      def query(id) = Rperf.op("SELECT * FROM `lines` WHERE id = #{id} | <b>", kind: :sql) { sleep(0.002) }
      def lines = 6.times { |id| query(id) }
    end

    serve = Rperf::RackMiddleware.new(lambda { |_|
      Shop.new.lines
      [200, {}, []]
    })
    Rperf.start(mode: :wall, frequency: 1000, measure: %i[requests ops], output: "p.pb.gz") do
      20.times { serve.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/a|b" }) }
      require "set"
      GC.start
      GC.start(full_mark: false)
    end
  RUBY

  before do
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", write_file("app.rb", app))
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
  end

  # What the command prints; with -o also what it writes.
  def printed(*arguments)
    outcome = rperf(*arguments)
    expect([outcome.status.exitstatus, outcome.stderr]).to match([0, /\A(rperf: wrote .*\n)?\z/])
    outcome.stdout
  end

  def written(name, *)
    expect(printed(*, "-o", name)).to eq("")
    File.binread(path_to(name))
  end

  def refusal(*)
    outcome = rperf(*)
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
    outcome.stderr
  end

  it "is written of slow requests" do
    [%w[why p.pb.gz], ["why", "p.pb.gz", "a|b"]].each do |why|
      markdown = printed(*why, "--format", "markdown")
      expect(markdown).to start_with("## Slow requests of `").and match(%r{`GET /a\\?\|b`})
      expect(written("why.md", *why)).to eq(markdown)
      expect(printed(*why, "--format", "json")).to eq(printed(*why, "--json"))
      expect(written("why.json", *why)).to eq(printed(*why, "--json"))
      expect(written("why.txt", *why)).to eq(printed(*why)).and eq(printed(*why, "-o", "-"))
    end
    expect(printed("why", "p.pb.gz", "--format", "markdown"))
      .to match(/^\| 6\.0 \| .* \| `GET .*` \| ``\[SQL\] SELECT \* FROM `lines` WHERE id = \?.*`` \|/)
  end

  it "is written of ops, of collections and of what is loaded" do
    { "--ops" => /^### Ops\n\n120 calls of 1 op:/, "--gc" => /^### Collections of garbage\n/,
      "--boot" => /^### Loading of files\n/ }.each do |option, heading|
      markdown = printed("report", option, "--format", "markdown", "p.pb.gz")
      expect(markdown).to match(heading).and start_with("## Profile of `")
      expect(markdown).not_to include("### Hottest methods")
      expect(written("part.md", "report", option, "p.pb.gz")).to eq(markdown)
      expect(written("part.json", "report", option, "p.pb.gz"))
        .to eq(printed("report", option, "--format", "json", "p.pb.gz"))
    end
    all = printed("report", "--ops", "--gc", "-n", "1", "--sort", "total", "--format", "markdown", "p.pb.gz")
    expect(all.scan(/^##.*/)).to match([/^## Profile of/, "### Ops", /^### Ops that requests/, /^### Collections/])
    expect(printed("report", "--format", "markdown", "p.pb.gz")).to include("### Hottest methods")
  end

  it "has the same numbers of what is called again and again, of slow requests and of ops" do
    row = /^\| 6\.0 \| ([\d,.]+ \p{Alpha}+) \|.*`GET .*SELECT/
    whys, ops = [%w[why], %w[report --ops]].map { |of| printed(*of, "--format", "markdown", "p.pb.gz")[row, 1] }
    expect(whys).to eq(ops).and end_with(" ms")
  end

  it "is refused where it has no meaning" do
    {
      %w[why p.pb.gz --format html] => "rperf: --format must be text, markdown or json, not 'html'\n",
      %w[why p.pb.gz -o why.csv] => "rperf: -o why.csv: rperf why writes .md, .json and .txt, unless --format says " \
                                    "which of them it is\n",
      %w[report --tests --format markdown p.pb.gz] => /\Arperf: the profile has no tests: .*\n\z/,
      %w[report --ops --focus a -o ops.md p.pb.gz] => /\Arperf: filters have no meaning for --ops, .*\n\z/,
      %w[report --gc --hide-ops p.pb.gz] => /\Arperf: filters have no meaning for --gc, .*\n\z/,
      %w[report --gc --format json --thread main p.pb.gz] => /\Arperf: filters have no meaning for --gc, .*\n\z/,
      %w[report --format markdown --sort total p.pb.gz] => /\Arperf: --sort goes .*, not with --format markdown\n\z/,
      %w[report --tree --ops -o x.md p.pb.gz] => "rperf: --tree and --ops can't be combined: give one of them\n"
    }.each { |arguments, message| expect(refusal(*arguments)).to match(message) }
    expect(refusal("why", "p.pb.gz", "--json", "--format", "json")).to match(/\Arperf: .*--json.*--format.*\n\z/)
    expect(Dir.children(path_to(".")).grep(/\A(x|why|ops)\./)).to eq([])
  end

  it "says in which files and formats an answer can be written" do
    {
      %w[--gc --boot -o x.csv] => "-o x.csv: --boot writes .txt, .md and .json, unless --format text, markdown or " \
                                  "json is given",
      %w[--gc --format dot] => "--format dot: --gc is written as text, markdown or json only",
      %w[--gc --ops -o x.txt] => "--ops and --gc can't be combined: give one of them",
      %w[--callers Shop#query -o x.md] => "-o x.md: --callers writes .txt and .json, unless --format text or json is " \
                                          "given",
      ["--callers", ""] => "--callers must be the name of a method, or an expression for names, not ''",
      %w[--callers Shop#query --format markdown] => "--format markdown: --callers is written as text or json only"
    }.each { |options, message| expect(refusal("report", *options, "p.pb.gz")).to eq("rperf: #{message}\n") }
    expect(printed("report", "--ops", "--format", "markdown", "-o", "-", "p.pb.gz")).to include("### Ops\n")
  end

  it "is text in a file of that name, too" do
    [%w[--ops], %w[--gc], %w[--boot], %w[--callers Shop#query]].each do |view|
      page = printed("report", *view, "p.pb.gz")
      expect(page).to start_with("Type: wall")
      expect(written("page.txt", "report", *view, "p.pb.gz")).to eq(page)
      expect(written("page", "report", *view, "--format", "text", "p.pb.gz")).to eq(page)
      expect(printed("report", *view, "-o", "-", "p.pb.gz")).to eq(page)
    end
    [%w[--top], %w[--methods], %w[--tree], %w[--annotate Shop#query]].each do |view|
      page = printed("report", *view, "p.pb.gz")
      expect(page).to start_with("Type: wall")
      expect(written("page.txt", "report", *view, "p.pb.gz")).to eq(page)
      expect(printed("report", *view, "-o", "-", "p.pb.gz")).to eq(page)
    end
  end

  it "has no option without an effect" do
    { %w[--ops --relative] => "--ops", %w[--gc --ops --relative] => "--ops and --gc", %w[--gc --sort total] => "--gc",
      %w[--ops --value cpu] => "--ops", %w[--gc --blame] => "--gc", %w[--gc --idle] => "--gc",
      %w[--boot --lines] => "--boot" }
      .each do |options, views|
      told = refusal("report", *options, "--format", "markdown", "p.pb.gz")
      expect(told).to match(/\Arperf: --(relative|sort|value|blame|idle|lines) goes with .*, not with #{views}\n\z/)
      expect(told).not_to include("--format markdown")
    end
    [%w[--value cpu], %w[--idle]].each do |option|
      expect(refusal("report", "--ops", *option, "p.pb.gz")).to match(/ goes with .*, not with --ops\n\z/)
    end
    printed("report", "--boot", "--gc", "--relative", "--sort", "total", "--format", "markdown", "p.pb.gz")
  end

  it "shows what ops are sorted by" do
    { [] => /^ +time +total +calls .* op$/, %w[--format markdown] => /^\| time \| total \| calls \|.*\| op \| at \|$/ }
      .each do |format, headings|
      pages = [%w[self], %w[total]].map { |(sort)| printed("report", "--ops", "--sort", sort, *format, "p.pb.gz") }
      expect(pages.map { |it| it.match?(headings) }).to eq([false, true])
      expect(pages.map { |it| it.include?("with the ops inside of it") }).to eq([false, true])
    end
  end

  it "has options on pages as in Markdown" do
    [[], %w[--format markdown]].each do |format|
      pages = [%w[--full-path], ["--trim-path", File.dirname(path_to("app.rb"))]].map do |paths|
        printed("report", "--ops", *format, *paths, "p.pb.gz")
      end
      expect(pages.map { |it| it.include?("#{path_to("app.rb")}:") }).to eq([true, false])
      expect(printed("report", "--gc", "-n", "1", *format, "p.pb.gz")).to match(/^\(?\d+ more(;| are not shown)/)
    end
  end
end
