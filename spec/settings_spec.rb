# frozen_string_literal: true

# The table of settings in crates/rperf-session is the only place that says what can be set.
RSpec.describe "The settings" do
  table = Rperf.const_get(:NativeSettings).table

  def guide(page) = File.read(File.join(Commands::ROOT, "docs", "guide", "#{page}.md"))

  def start_error(keywords)
    Rperf.start(**keywords) { nil }
  rescue ArgumentError => e
    e.message
  end

  it "are in the guide's table of variables, with their values and defaults" do
    rows = guide("environment-variables").scan(/^\| `(RPERF_\w+)` \| (.*?) \| (.*) \|$/)
    variables = table.select { |setting| setting[:variable] }.to_h { |setting| [setting[:variable], setting] }
    words = Rperf.const_get(:Native).session_words
    expect(rows.map(&:first)).to match_array([*words.values_at(:enabled, :session), *variables.keys])
    rows.to_h { |name, *rest| [name, rest] }.slice(*variables.keys).each do |name, (values, meaning)|
      setting = variables.fetch(name)
      expect([name, *values.delete("`").split(", ")]).to match_array([name, *setting[:variable_values].split(", ")])
      default = setting[:variable_default]
      expect(meaning.delete("`")).to include(default) if default && setting[:variable_values] != "1, 0"
    end
  end

  it "are in the guide's table of flags" do
    flags = table.filter_map { |setting| setting[:flag] }
    expect(flags).to include("-f", "--lines", "--no-inherit")
    expect(guide("cli").scan(/^\| (`-.*?) \|/).join).to include(*flags.map { |flag| "`#{flag}" })
  end

  it "are flags of the commands" do
    help = rperf("record", "--help").stdout
    table.filter_map { |setting| setting[:flag] }.each { |flag| expect(help).to match(/^ +(?:-\w, )?#{flag}\b/) }
  end

  {
    frequency: ["0", 0], mode: ["gpu", :gpu], format: ["svg", :svg], signal: ["9", 9], capture: ["leaf", :leaf],
    output: ["/no/such/p", "/no/such/p"]
  }.each do |name, (text, object)|
    it "say the same of a wrong #{name}, be it a flag, a keyword or a variable" do
      setting = table.find { |it| it[:name] == name.name }
      flag = rperf("record", setting[:flag], text, ruby, "-e", "1").stderr
      variable = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "1",
                     env: { "RPERF_ENABLED" => "1", setting[:variable] => text }).stderr
      message = flag[/\Arperf: #{setting[:flag]} (must be .*), not '#{text}'\n\z/, 1]
      expect(variable).to eq("rperf: #{setting[:variable]} #{message}, not '#{text}'; running without profiling\n")
      # In Ruby's notation, and nil is another value.
      keyword = start_error({ name => object }).delete(":").sub(/, ([^,]*) or nil \(.*?\),/, ' or \1,')
      keyword = keyword.sub(/ or nil \(.*?\)/, "")
      expect(keyword).to eq("#{name} #{message}, not #{object.inspect.delete(":")}")
    end
  end

  it "name what goes with what in the user's words" do
    keywords = start_error({ inherit: :fork, aggregate: false })
    expect(keywords).to eq("inherit: must be false with aggregate: false, not :fork")
    flags = rperf("stat", "--capture", "tick", "--signal", "false", ruby, "-e", "1").stderr
    expect(flags).to eq("rperf: --capture must be safepoint with --signal false, not 'tick'\n")
  end

  it "refuse keywords that aren't Symbols as Ruby does" do
    expect { Rperf.start("mode" => :wall) }.to raise_error(ArgumentError, 'unknown keyword: "mode"')
    expect { Rperf.start(a: 1, b: 2) }.to raise_error(ArgumentError, "unknown keywords: :a, :b")
    expect { Rperf.start(stat: true) }.to raise_error(ArgumentError, "unknown keyword: :stat")
  end

  describe "and the words of a session" do
    it "are the same in lib/rperf/processes/launch.rb, which must work without the extension" do
      launch = Rperf.const_get(:Launch)
      words = Rperf.const_get(:Native).session_words
      expect(launch.constants.to_h { |name| [name.downcase, launch.const_get(name)] }).to eq(words)
    end

    # But for shared_session.rs, which hands some to Ruby under names that are alike.
    it "stand in one file of Rust each" do
      files = Dir[File.join(Commands::ROOT, "{crates,ext}/*/src/**/*.rs")]
      code = files.to_h { |path| [path, File.read(path)[/\A.*?(?=^#\[cfg\(test\)\]|\z)/m]] }
      {
        "event.rs" => %w[started forked declined withdrawn delivered exec-failed daemon-failed],
        "directory.rs" => %w[settings status lock], "environment.rs" => %w[INITIATOR ABI ADDED_ RUBYOPT RUBYLIB],
        "setting.rs" => %w[RPERF_], "table.rs" => %w[rperf.data RPERF_ENABLED RPERF_SESSION stat_command stat_report]
      }.each do |file, words|
        words.each do |word|
          found = code.select { |_, text| text.match?(/"(?:\{.*\})?#{Regexp.escape(word)}"/) }.keys
          expect([word, found.map { |path| File.basename(path) } - ["shared_session.rs"]]).to eq([word, [file]])
        end
      end
    end
  end
end
