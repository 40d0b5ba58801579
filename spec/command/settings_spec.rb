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
    help = %w[record trace].map { |command| rperf(command, "--help").stdout }.join
    table.filter_map { |setting| setting[:flag] }.each { |flag| expect(help).to match(/^ +(?:-\w, )?#{flag}\b/) }
  end

  {
    frequency: ["0", 0], max_overhead: ["0", 0], mode: ["gpu", :gpu], format: ["svg", :svg], signal: ["9", 9],
    capture: ["leaf", :leaf], output: ["/no/such/p", "/no/such/p"]
  }.each do |name, (text, object)|
    it "say the same of a wrong #{name}, be it a flag, a keyword or a variable" do
      setting = table.find { |it| it[:name] == name.name }
      flag = rperf("record", setting[:flag], text, ruby, "-e", "1").stderr
      variable = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "1",
                     env: { "RPERF_ENABLED" => "1", setting[:variable] => text }).stderr
      message = flag[/\Arperf: #{setting[:flag]} (must be .*), not '#{text}'\n\z/, 1]
      # The commands write a profile, which a session of accounts has none of.
      message = message.sub(" or trace", ", trace or account") if name == :mode
      expect(variable).to eq("rperf: #{setting[:variable]} #{message}, not '#{text}'; running without profiling\n")
      # In Ruby's notation, and nil is another value.
      keyword = start_error({ name => object }).delete(":").sub(/, ([^,]*) or nil \(.*?\),/, ' or \1,')
      keyword = keyword.sub(/ or nil \(.*?\)/, "")
      expect(keyword).to eq("#{name} #{message}, not #{object.inspect.delete(":")}")
    end
  end

  it "name what goes with what in the user's words" do
    keywords = start_error({ inherit: :fork, aggregate: false })
    expect(keywords).to eq("aggregate: false goes with inherit: false, not with inherit: :fork")
    flags = rperf("stat", "--capture", "tick", "--signal", "false", ruby, "-e", "1").stderr
    expect(flags).to eq("rperf: --signal false goes with --capture safepoint, not with --capture tick\n")
  end

  it "refuse keywords that aren't Symbols as Ruby does" do
    expect { Rperf.start("mode" => :wall) }.to raise_error(ArgumentError, 'unknown keyword: "mode"')
    expect { Rperf.start(a: 1, b: 2) }.to raise_error(ArgumentError, "unknown keywords: :a, :b")
    expect { Rperf.start(stat: true) }.to raise_error(ArgumentError, "unknown keyword: :stat")
  end

  it "refuse Symbols that are no text as they do others" do
    symbol = "\xFF".b.to_sym
    expect(%i[mode format capture].map { |name| start_error({ name => symbol }) })
      .to match([/\Amode: must be :cpu/, /\Aformat: must be :pprof/, /\Acapture: must be :/])
    expect { Rperf.save("p", {}, format: symbol) }.to raise_error(ArgumentError, /\Aformat: must be :pprof/)
  end

  describe "for the output" do
    def profiled(output, env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => output })
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "1", env:)
    end

    it "have paths as File.absolute_path has them" do
      program = "Rperf.start(output: 'no/../a.txt') { 1 }; Rperf.start(output: 'b.txt/') { 1 }"
      outcomes = [run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program), profiled("no/../c.txt"),
                  profiled("d.txt/")]
      expect(outcomes.map(&:stderr)).to eq(["", "", ""])
      expect(Dir.glob("*", base: directory)).to match_array(%w[a.txt b.txt c.txt d.txt])
    end

    it "have no descriptor that is Ruby's own" do
      program = "(3..9).each { |it| Rperf.start(output: \"/dev/fd/\#{it}\") { 1 } rescue puts $!.message }"
      messages = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program).stdout.lines(chomp: true)
      expect(messages).to eq((3..9).map { |it| "output: must be open for writing, not \"/dev/fd/#{it}\"" })
      File.symlink("/dev/fd/3", path_to("link"))
      ["/dev/fd/3", "/dev/fd/4", "link"].each do |path|
        expect(profiled(path).stderr)
          .to eq("rperf: RPERF_OUTPUT must be open for writing, not '#{path}'; running without profiling\n")
      end
    end

    # The user namespace of an emulated run has one user.
    it "go by the effective user", if: Process.uid.zero?, emulated: false do
      program = "Process::Sys.seteuid(65534); Rperf.start(output: '/rperf-spec.txt') rescue print $!.message"
      expect(run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program).stdout)
        .to start_with("output: must be in a directory that can be written to")
    end
  end

  describe "for labels" do
    def label_sets(labels) = Rperf.start(mode: :wall, labels:) { sleep 0.01 }[:label_sets]

    it "have texts as Rperf.label has them, whatever their encoding" do
      labels = { a: "é".encode("ISO-8859-1"), "b" => "é".encode("UTF-16LE"), c: "é", d: "é".b }
      expect(label_sets(labels)).to include({ a: "é", b: "é", c: "é", d: "é" })
    end

    it "have no zero byte, which would end them in a session's settings" do
      [{ a: "x\0y" }, { "a\0b" => 1 }].each do |labels|
        expect(start_error({ labels: }))
          .to eq("labels: must be labels without a zero byte, not #{labels.inspect}")
      end
    end

    it "are the only ones that are asked for texts" do
      asked = false
      object = Object.new.tap { |it| it.define_singleton_method(:to_s) { asked = super() } }
      expect(start_error({ frequency: { a: object } })).to start_with("frequency: must be a whole number")
      expect { label_sets({ a: object }) }.to change { asked }.from(false)
    end

    it "may have a to_s that changes the Hash" do
      labels = {}
      labels[:a] = Object.new.tap { |it| it.define_singleton_method(:to_s) { labels[:more] = "text" } }
      expect(label_sets(labels)).to include({ a: "text" })
    end
  end

  it "have words that the engine knows" do
    words = table.find { |it| it[:name] == "mode" }[:variable_values].split(", ")
    expect(words.map { |word| Rperf.start(mode: word.to_sym) { nil }[:mode].name }).to eq(words)
  end

  # An emulator has numbers of its own for real-time signals.
  it "have the signals that the engine knows", if: File.exist?("/proc/self/timers"), emulated: false do
    least, most, default = start_error({ signal: 9 }).scan(/from (\d+) to (\d+) .*SIGRTMIN\+(\d+)/).first.map(&:to_i)
    used = "File.read('/proc/self/timers')[%r{^signal: (\\d+)/}, 1].to_i"
    program = "p([#{least}, #{most}, nil].map { |signal| Rperf.start(signal:); #{used}.tap { Rperf.stop } })"
    expect(run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", program).stdout)
      .to eq("#{[least, most, least + default].inspect}\n")
  end

  describe "and the words of a session" do
    it "are the same in lib/rperf/processes/launch.rb, which must work without the extension" do
      launch = Rperf.const_get(:Launch)
      words = Rperf.const_get(:Native).session_words
      expect(launch.constants.to_h { |name| [name.downcase, launch.const_get(name)] }).to eq(words)
    end

    # But for session_words.rs, which hands some to Ruby under names that are alike.
    it "stand in one file of Rust each" do
      files = Dir[File.join(Commands::ROOT, "{crates,ext}/*/src/**/*.rs")]
      code = files.to_h { |path| [path, File.read(path)[/\A.*?(?=^#\[cfg\(test\)\]|\z)/m]] }
      {
        "event.rs" => %w[started forked declined withdrawn delivered exec-failed daemon-failed],
        "directory.rs" => %w[settings status lock], "environment.rs" => %w[INITIATOR ADDED_ RUBYOPT RUBYLIB],
        "setting.rs" => %w[RPERF_], "table.rs" => %w[rperf.data RPERF_ENABLED RPERF_SESSION stat_command stat_report]
      }.each do |file, words|
        words.each do |word|
          found = code.select { |_, text| text.match?(/"(?:\{.*\})?#{Regexp.escape(word)}"/) }.keys
          expect([word, found.map { |path| File.basename(path) } - ["session_words.rs"]]).to eq([word, [file]])
        end
      end
    end
  end
end
