# frozen_string_literal: true

# What a trace leaves out.
RSpec.describe "What a trace leaves out", vm: true do
  setup = <<~'RUBY'
    require File.expand_path("wrap")

    class Cart
      def self.find = new
      def total = wrap { 2.times { line(3) } }
      def line(left) = left.zero? ? works : line(left - 1)
      def works = Array.new(30) { Object.new }
      def fails(left) = left.zero? ? raise("no") : fails(left - 1)
    end

    def run
      [Cart.find].each { |cart| cart.total; cart.fails(2) rescue cart.works }
      Fiber.new { Cart.find.total }.resume
      Thread.new { Cart.find.total }.join
    end

    # By column, the sums of the methods; the paths of calls; the methods whose calls were timed; the head.
    def traced(**)
      profile = Rperf.trace(warn: false, measure: %i[alloc latency], **) { run }
      sums = %w[calls alloc_objects wall overhead].to_h do |value|
        [value, profile.top(value:, sort: :total).to_h { |row| [row[:name], row[:self]] }]
      end
      stack = []
      paths = profile.tree(least: 0, value: "calls").to_h do |row|
        [(stack = stack.take(row[:depth]) << row[:name]).join(" > "), row[:self]]
      end
      profile.save("t.json")
      profile.save("t.txt")
      timed = JSON.parse(File.read("t.json"))["methods"].select { |row| row["max_ns"] }.map { |row| row["name"] }
      head = File.read("t.txt").scan(/^Traced: (?:process \d+: )?(.*(?:leave|deeper|left out:).*)$/).flatten
      { sums:, paths:, timed:, head: }
    end
    run
  RUBY

  def depths(paths) = paths.select { |_, calls| calls.positive? }.keys.map { |path| path.split(" > ").size }

  it "has its time, its objects and what it calls in its callers" do
    write_file("wrap.rb", "def wrap = inner { yield }\ndef inner = yield\n")
    traces = told("#{setup}puts JSON.generate(#{<<~RUBY.tr("\n", " ")})")
      { whole: traced, named: traced(exclude: "Cart#line,Cart.*"), files: traced(exclude: %w[wrap.rb Cart#totl]),
        common: traced(exclude_common: true, calls: :all), shallow: traced(depth: 6), flat: traced(depth: 1) }
    RUBY
    whole, named, files, common, shallow, flat = traces.values
    objects = traces.transform_values { |trace| trace["sums"]["alloc_objects"].values.sum }
    about_whole = be_within(40).of(objects["whole"])
    expect(objects.values_at("named", "files", "shallow")).to all(about_whole)

    calls = named["sums"]["calls"]
    expect(calls).to include("Cart#total" => 3, "Cart#works" => 7, "Cart#fails" => 3)
    expect(calls.keys).not_to include("Cart#line", "Cart.find")
    expect(named["paths"].keys).to include(/Integer#times > block \(2 levels\) in Cart#total > Cart#works\z/)
    expect(named["timed"] & %w[Cart#works Cart#line]).to eq(%w[Cart#works])
    expect(whole["timed"]).to include("Cart#line")
    expect(named["head"]).to eq(["left out: Cart#line,Cart.*", "27 calls left out: the time is in the callers"])
    expect(files["sums"]["calls"].keys & %w[Object#wrap Object#inner]).to eq([])
    expect(files["head"]).to include("left out: wrap.rb,Cart#totl", "nothing to leave out of Cart#totl")

    expect(common["sums"].values.flat_map(&:keys) & %w[Array#each Integer#times]).to eq([])
    expect(common["sums"]["calls"]).to include("Cart#works" => 7).and have_key("Class#new").or have_key("Kernel#raise")
    expect(whole["sums"]["calls"]).to include("Integer#times" => 3)

    expect(shallow["sums"]["calls"]).to include("Cart#works" => 7, "Cart#line" => 24)
    expect([depths(shallow["paths"]).max, depths(whole["paths"]).max]).to match([7, be > 12])
    expect(shallow["head"]).to include(/\A\d+ calls deeper than 6 frames: the time is in the last frame above\z/)
    expect(whole["head"]).to eq([])

    # Methods of Ruby's own count where only blocks that are deeper tell that they call something.
    counts = [flat, whole].map { |trace| trace["sums"]["calls"].select { |_, count| count.positive? } }
    expect(counts.first).to eq(counts.last)
    expect(flat["head"]).to include(/ deeper than 1 frame: /)
  end

  it "is asked for by options, and is nothing of rperf's in any case" do
    write_file("app.rb", "def leaf = 1\ndef twice = 2.times { leaf }\ntwice\nexit\n")
    outcome = rperf("trace", "--exclude", "Object#leaf", "--exclude-common", "--depth", "9", ruby, "app.rb")
    expect(outcome.stderr).to match(/\Arperf: wrote rperf.data \([1-9] calls?, .*\n\z/)
    names = Rperf.load(path_to("rperf.data")).top(value: "wall", sort: :total).map { |row| row[:name] }
    expect(names).to include("Object#twice", "[rperf]")
    expect(names.grep(/\ARperf|leaf|times|require/)).to eq([])
    gems = Rperf.load(path_to("rperf.data")).top(value: "wall", by: :gem, sort: :total).map { |row| row[:name] }
    expect(gems.grep(/rperf/)).to eq(["rperf"])
    expect(rperf("report", "--top").stdout).to match(/^Traced: left out: Object#leaf$/)
      .and match(/^Traced: left out: --exclude-common$/)
  end

  it "is what rperf calls of the core itself, and nothing that the program calls" do
    write_file("app.rb", "def twice = [1, 2].each { |it| it.to_s }\ntwice\n")
    expect(rperf("trace", "--calls", "all", ruby, "app.rb").status).to be_success
    rows = Rperf.load(path_to("rperf.data")).top(value: "calls").select { |row| row[:self].positive? }
    expect(rows.map { |row| row[:name] }).to match_array(%w[Object#twice Array#each Integer#to_s Module#method_added])
  end

  {
    %w[trace --exclude total ruby] =>
      "--exclude must be methods or their files, such as Order#total or app/**, not 'total'",
    %w[trace --exclude A#x --exclude Nope ruby] =>
      "--exclude must be methods or their files, such as Order#total or app/**, not 'Nope'",
    %w[trace --depth 0 ruby] => "--depth must be a whole number from 1 to 10000 (frames), not '0'",
    %w[trace --only A#b --depth 9 ruby] => "--depth 9 can't be combined with --only A#b: leave one of them out"
  }.each do |arguments, message|
    it "refuses #{arguments.join(" ")}" do
      expect(rperf(*arguments).stderr).to eq("rperf: #{message}\n")
    end
  end
end
