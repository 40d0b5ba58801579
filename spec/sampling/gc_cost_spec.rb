# frozen_string_literal: true

require "json"

# What objects cost the collector, by their sites: a model whose shares add up to the time of all collections.
RSpec.describe "gc_cost", vm: true do
  work = <<~RUBY
    class Maker
      def many(n) = (3 * n).times { Object.new }
      def few(n) = n.times { Object.new }
      def both(rounds) = rounds.times { many(100); few(100) }
      def kept(n) = Array.new(n) { |i| [i] }
    end

    def costs(profile, by: :function, **filter)
      profile.top(value: "gc_cost", by:, limit: nil, **filter).to_h { |row| [row[:name], row[:self]] }
    end

    # What all collections took, in the clock of the values.
    def collected(profile, clock = :wall_ns)
      GCS.call(profile).sum { |row| row[clock] }
    end
    GCS = ->(profile) { profile.gc.fetch(:causes) }
  RUBY

  define_method(:told_of) { |program, *options, **run| told("#{work}\n#{program}", *options, **run) }

  { wall: "wall_ns", cpu: "cpu_ns" }.each do |mode, clock|
    it "has three times as much for three times as many bytes, and adds up to all collections in #{mode} mode" do
      costs, all, bytes = told_of(<<~RUBY)
        maker = Maker.new
        base = maker.kept(100_000)
        profile = Rperf.start(mode: :#{mode}, measure: :gc_cost) { maker.both(40_000) }
        puts [costs(profile), collected(profile, :#{clock}),
              profile.top(value: "alloc_space", limit: nil).to_h { |row| [row[:name], row[:self]] }].to_json
      RUBY
      many, few = %w[many few].map { |name| costs.fetch("block in Maker##{name}") }
      # 16 million objects of 40 bytes are 10,000 samples: one standard deviation is 2.3 % of the ratio. Collections
      # aren't equally long, so that those of which few samples are drawn have a part in it.
      expect(many.fdiv(few)).to be_within(0.45).of(3.0)
      sampled = %w[many few].map { |name| bytes.fetch("block in Maker##{name}") }.reduce(:fdiv)
      expect(many.fdiv(few)).to be_within(0.4).of(sampled)
      expect(costs.values.sum).to eq(all)
      expect(all).to be > 0
    end
  end

  it "knows the objects that major collections mark if it knows what lives" do
    live, made = [%i[heap gc_cost], %i[gc_cost]].map do |measure|
      told_of(<<~RUBY)
        maker = Maker.new
        kept = nil
        profile = Rperf.start(mode: :wall, measure: #{measure.inspect}) do
          kept = maker.kept(800_000)
          maker.both(30_000)
          # Many old objects are the reason of major collections.
          6.times { kept.concat(maker.kept(200_000)) }
        end
        marking = GCS[profile].select { |it| it[:cause].start_with?("major") }.sum { |it| it[:marking_ns] }
        puts [costs(profile), collected(profile), marking].to_json
      RUBY
    end
    [live, made].each do |costs, all, marking|
      expect(costs.values.sum).to eq(all)
      expect(marking).to be > 0
    end
    costs, _, marking = made
    expect(costs.fetch("[GC of long-lived objects]")).to eq(marking)
    costs, _, marking = live
    # Ruby's own objects are the rest.
    expect(costs.fetch("[GC of long-lived objects]", 0)).to be < marking / 2
    expect(costs.fetch("block in Maker#kept")).to be > marking / 3
  end

  it "leaves marking to long-lived objects as far as these are older than the session" do
    long_lived, marking, turns = told_of(<<~RUBY)
      maker = Maker.new
      # As many before as in it, all kept.
      before = maker.kept(600_000)
      # None is marking or half swept.
      GC.start
      kept = turns = nil
      profile = Rperf.start(mode: :wall, measure: %i[heap gc_cost]) do
        kept = maker.kept(600_000)
        # Incremental marking goes on while these are made.
        enough = GC.stat(:major_gc_count) + 6
        turns = (0...1_000).find do
          kept.shift(20_000)
          kept.concat(maker.kept(20_000))
          maker.both(200)
          GC.stat(:major_gc_count) >= enough
        end
        # The last one ends.
        GC.start
      end
      majors = GCS[profile].select { |it| it[:cause].start_with?("major") && !it[:cause].end_with?("GC.start") }
      puts [costs(profile).fetch("[GC of long-lived objects]", 0), majors.sum { |it| it[:marking_ns] }, turns,
            before.size].to_json
    RUBY
    expect(turns).to be > 0
    # The session has kept half of all.
    expect(long_lived.fdiv(marking)).to be_between(0.35, 0.65)
  end

  it "leaves collections that the program asks for to the line that asks" do
    costs, asked, labels = told_of(<<~RUBY)
      maker = Maker.new
      profile = Rperf.start(mode: :wall, measure: :gc_cost) do
        20.times { Rperf.label(page: "a") { maker.both(200) }; GC.start; GC.start(full_mark: false) }
      end
      asked = GCS[profile].select { |it| it[:cause].end_with?("GC.start") }
      puts [costs(profile), asked.sum { |it| it[:wall_ns] }, costs(profile, by: "label:page")].to_json
    RUBY
    expect(asked).to be > 0
    expect(costs.fetch("[GC asked for]")).to eq(asked)
    expect(labels.values.sum).to eq(costs.values.sum)
  end

  it "has the labels and classes of objects, in all snapshots, of which each begins where the last one ended" do
    parts, all, classes, pages = told_of(<<~RUBY)
      maker = Maker.new
      Rperf.start(mode: :wall, measure: %i[heap gc_cost])
      parts = Array.new(4) do |i|
        Rperf.label(page: "a") { maker.both(4_000) }
        i == 3 ? Rperf.stop : Rperf.snapshot(clear: true)
      end
      merged = Rperf.merge(*parts)
      puts [parts.map { |it| [costs(it).values.sum, collected(it)] }, collected(merged), costs(merged, by: "label:%class"),
            costs(merged, by: "label:page")].to_json
    RUBY
    parts.each { |costs, collected| expect(costs).to eq(collected) }
    expect(parts.sum(&:first)).to eq(all)
    expect(classes.fetch("Object")).to be > all / 2
    expect(pages.fetch("a")).to be > all / 2
  end

  it "is in files and differences, and says that it is a model" do
    write_file("app.rb", "#{work}\nMaker.new.both(Integer(ARGV[0]))")
    [4_000, 60_000].each do |rounds|
      record = rperf("record", "-m", "wall", "--measure", "gc_cost", "-o", "#{rounds}.pb.gz", ruby, "app.rb",
                     rounds.to_s)
      expect(record.status).to be_success, record.stderr
    end
    report = ->(*arguments) { rperf("report", "--value", "gc_cost", *arguments, "60000.pb.gz").stdout }
    expect(report["--top"]).to match(/^gc_cost: a model,/).and include("block in Maker#many")
    expect(JSON.parse(report["--format", "json"])["type"]).to eq("name" => "gc_cost", "unit" => "nanoseconds")
    expect(report["--format", "markdown"]).to include("block in Maker#many")
    diff = rperf("diff", "--top", "--value", "gc_cost", "4000.pb.gz", "60000.pb.gz").stdout
    expect(diff).to match(/\+.*block in Maker#many/)
    gate = rperf("diff", "--fail-on", "gc_cost>50%", "4000.pb.gz", "60000.pb.gz")
    expect(gate.status.exitstatus).to eq(3)
  end
end
