# frozen_string_literal: true

# docs/guide/ruby-api.md describes the whole API and nothing else.
RSpec.describe "docs/guide/ruby-api.md" do
  # The cells of the first columns of the tables below the heading.
  def table(heading)
    text = File.read(File.join(Commands::ROOT, "docs", "guide", "ruby-api.md"))
    section = text[/^#+ #{Regexp.escape(heading)}\n(.*?)(?=^#|\z)/m, 1]
    section.lines.grep(/\A\| [`\d]/).map { |line| line.split("|").map(&:strip)[1, 2] }
  end

  def profile(**options)
    Rperf.start(mode: :wall, **options) { Rperf.label(task: 1) { spin(0.1) } }
  end

  it "has the arguments of Rperf.start, with their defaults" do
    arguments = Rperf.const_get(:NativeSettings).table.filter_map do |setting|
      [setting[:keyword], setting[:keyword_default]] if setting[:keyword]
    end
    documented = table("Arguments of Rperf.start").map { |row| row.map { |cell| cell.delete("`") } }
    expect(documented).to match_array(arguments)
  end

  it "has the arguments of Rperf::Viewer.new, with their defaults, and its methods" do
    require "rperf/viewer"
    source = File.read(File.join(Commands::ROOT, "lib", "rperf", "viewer.rb"))
    arguments = source[/def initialize\(app = nil, (.*?)\)$/m, 1].scan(/(\w+:) ([^,]+?)(?:,|\z)/)
    documented = table("Arguments of Rperf::Viewer.new").map { |row| row.map { |cell| cell.delete("`") } }
    documented, methods = documented.partition { |name, _| name.end_with?(":") }
    expect(documented).to match_array(arguments)
    names = Rperf::Viewer.instance_method(:initialize).parameters.filter_map { |kind, name| "#{name}:" if kind == :key }
    expect(arguments.map(&:first)).to match_array(names)
    names = Rperf::Viewer.public_instance_methods(false) - [:inspect]
    expect(methods.filter_map { |name, _| name[/\A#(\w+!?)/, 1]&.to_sym }).to match_array(names)
  end

  it "has the keys of the Hash" do
    documented = table("The Hash").flat_map { |keys, _| keys.scan(/:(\w+)/).flatten.map(&:to_sym) }
    expect(profile.keys | profile(aggregate: false).keys).to match_array(documented)
    expect(profile.keys).to match_array(documented - [:raw_samples])
    expect(profile(aggregate: false).keys)
      .to match_array(documented - %i[aggregated_samples unique_frames unique_stacks])
  end

  it "has the columns of a row" do
    columns = table("A row of :samples").map { |number, _| Integer(number) }
    expect(columns).to eq([*0..6])
    expect(profile[:samples].map(&:size).uniq).to eq([6])
    expect(profile(aggregate: false)[:samples].map(&:size).uniq).to eq([7])
  end

  it "has the questions, with their arguments" do
    files = %w[profile.rb files.rb].map { |file| File.join(Commands::ROOT, "lib", "rperf", "api", file) }
    source = files.map { |file| File.read(file) }.join
    documented = table("Questions").first(12).to_h.transform_keys { |name| name.delete("`") }
    expect(documented.keys).to match_array(Rperf::Profile.instance_methods(false).map(&:to_s) - ["save"])
    documented.each do |name, arguments|
      definition = source.scan(/^ +def #{name}\(([^)]*)\)/).map(&:first).max_by(&:size).to_s
      expect(arguments.scan(/\w+: [^`]+/)).to eq(definition.scan(/\w+: [^,]+/))
    end
  end

  it "has the filters" do
    filters = table("Questions").drop(6).flat_map { |names, _| names.scan(/\w+(?=:)/) }
    taken = Rperf.const_get(:Asking).questions.method(:filters).parameters
    expect(filters).to match_array(taken.map { |_, name| name.to_s })
    command = rperf("report", "--help").stdout[/^Filters:.*/m].scan(/^ +--(\w[\w-]*)/).flatten
    expect(filters.map { |name| name.tr("_", "-") } - ["value"]).to match_array(command)
  end

  it "shows how a spec holds a method to its share of the time" do
    app = Object.new
    app.define_singleton_method(:call) { |_request| 20_000.times(&:to_s) }
    profile = Rperf.start { 30.times { app.call(:request) } }
    totals = profile.totals(focus: /\AInteger#to_s\z/)
    expect(totals[:left]).to be_between(1, totals[:total])
    expect(profile.totals(focus: /\AJSON\.generate\z/)[:left]).to eq(0)
  end

  it "says which keys and columns Rperf.save needs" do
    data = { mode: :cpu, frequency: 100, samples: [[[["a.rb", "work"]], 5_000_000]] }
    Rperf.save(path_to("a.collapsed"), data)
    expect(File.read(path_to("a.collapsed"))).to match(/\Awork.* 5000000\n\z/)
    data.each_key do |key|
      expect { Rperf.save(path_to("b.txt"), data.except(key)) }.to raise_error(ArgumentError, /#{key}/)
    end
  end
end
