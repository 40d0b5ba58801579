# frozen_string_literal: true

require "json"
require "yaml"

# The Arrays of a profile's Hash are made when something asks for them. Nobody sees that.
RSpec.describe "a profile whose Arrays are made later", vm: true do
  # Stands for a native profile, and counts.
  native = Struct.new(:rows, :made) do
    def facts = { mode: :wall, frequency: 1000 }
    def arrays = { samples: :samples, aggregated_samples: :samples, label_sets: :label_sets }
    def label_sets = [{}, { endpoint: "a" }]
    def check = []

    def samples
      self.made += 1
      rows
    end
  end

  rows = [[[["a.rb", "work"].freeze].freeze, 5, 1, 0].freeze].freeze
  plain = { mode: :wall, frequency: 1000, samples: rows, aggregated_samples: rows,
            label_sets: [{}, { endpoint: "a" }] }

  let(:made_by) { native.new(rows, 0) }
  let(:profile) { Rperf::Profile.from_native(made_by) }

  {
    "[]" => ->(it) { it[:samples] }, "fetch" => ->(it) { it.fetch(:aggregated_samples) },
    "dig" => ->(it) { [it.dig(:samples, 0)] }, "dig from outside" => ->(it) { { a: it }.dig(:a, :samples) },
    "values_at" => ->(it) { it.values_at(:mode, :samples).last }, "slice" => ->(it) { it.slice(:samples)[:samples] },
    "values" => ->(it) { it.values[2] }, "each" => ->(it) { it.each.to_a[2][1] }, "map" => ->(it) { it.map(&:last)[2] },
    "to_a" => ->(it) { it.to_a[2][1] }, "to_h" => ->(it) { it.to_h[:samples] },
    "merge" => ->(it) { it.merge({})[:samples] }, "except" => ->(it) { it.except(:mode)[:samples] },
    "select" => ->(it) { it.select { |_, value| value.is_a?(Array) }[:samples] }, "dup" => ->(it) { it.dup[:samples] },
    "clone" => ->(it) { it.clone(freeze: true)[:samples] }, "freeze" => ->(it) { it.freeze[:samples] },
    "delete" => ->(it) { it.delete(:samples) }, "to_proc" => ->(it) { [:samples].map(&it).first },
    "a pattern" => ->(it) { (it in { mode: :wall, samples: }) && samples },
    "the rest of a pattern" => ->(it) { (it in { mode: :wall, **rest }) && rest[:samples] },
    "Marshal" => ->(it) { Marshal.load(Marshal.dump(it))[:samples] },
    "Marshal of a copy" => ->(it) { Marshal.load(Marshal.dump({ **it }))[:samples] },
    "JSON" => ->(it) { JSON.parse(JSON.generate(it))["samples"] },
    "to_json" => ->(it) { JSON.parse(it.to_json)["samples"] },
    "JSON of a copy" => ->(it) { JSON.parse(JSON.generate({ **it }))["samples"] }
  }.each do |name, ask|
    it "gives the Array of samples by #{name}" do
      expect(ask.call(profile)).to eq(rows).and be_an(Array)
      expect(made_by.made).to eq(1)
    end
  end

  it "makes none for what needs none" do
    expect([profile[:mode], profile.keys, profile.size, profile.key?(:samples)]).to eq([:wall, plain.keys, 5, true])
    expect(profile.fetch(:frequency)).to eq(1000)
    expect(profile.slice(:mode)).to eq(mode: :wall)
    expect(profile).to be_a(Hash)
    expect((profile in { mode: :wall })).to be(true)
    profile[:note] = "mine"
    expect([profile.count { |key, _| key == :note }, profile.class]).to eq([1, Rperf::Profile])
    expect(Rperf::Profile.from_native(made_by)[:label_sets]).to eq([{}, { endpoint: "a" }])
  end

  it "is equal to a Hash with the same content, from both sides" do
    [profile == plain, plain == profile.dup, profile.eql?(plain), profile.hash == plain.hash, profile.dup == profile,
     { **profile }.eql?(plain), plain == { **profile }].each { |equal| expect(equal).to be(true) }
    expect(profile.to_h).to eq(plain)
    expect(profile.inspect).to eq(plain.inspect)
    expect(YAML.dump(profile.to_h)).to eq(YAML.dump(plain))
  end

  it "gives the same Array under both keys, each time, and to all copies" do
    copy = profile.dup
    expect([profile[:samples], profile[:aggregated_samples], copy[:samples]]).to all(be(profile[:samples]))
    expect(made_by.made).to eq(1)
  end

  it "keeps what another thread puts there while the Array is made" do
    mine = profile
    made_by.define_singleton_method(:samples) do
      self.made += 1
      Thread.new { mine[:samples] = [] }.join if made == 1
      rows
    end
    expect(mine[:samples]).to eq([])
    expect(mine.to_h).to include(samples: [], aggregated_samples: rows)
  end

  it "is what stands in for the Array where the Hash was copied past its methods" do
    [{ **profile }, {}.merge(profile), {}.replace(profile)].each do |copy|
      samples = copy[:samples]
      first, = samples
      expect(first).to be(rows.first)
      expect([*samples, [0] + samples, Array(samples), samples.size, samples.sum { |row| row[1] }, samples.empty?])
        .to eq([*rows, [0] + rows, rows, 1, 5, false])
      expect([[samples].flatten(1), samples.map(&:first), samples.frozen?]).to eq([rows, [rows[0][0]], false])
      expect((samples in [[_, 5, *]])).to be(true)
      Rperf.save(path_to("p.collapsed"), copy)
      expect(File.read(path_to("p.collapsed"))).to eq("work 5\n")
    end
  end

  it "is still asked by save and questions when some of the Arrays were looked at" do
    loaded = Rperf.start(mode: :wall) { spin 0.03 }
    before = loaded.callers(/spin/)
    expect(before.first[:callees].flat_map { |it| it[:lines] }).to all(include(line: be > 0))
    expect(loaded[:samples]).to be_an(Array).and be_frozen
    expect(loaded.callers(/spin/)).to eq(before)
    expect(loaded.each_value(&:itself).callers(/spin/)).to eq(before)
    expect(loaded.merge(samples: loaded[:samples]).callers(/spin/)).to eq(before)
    expect(loaded.merge(samples: []).totals[:total]).to eq(0)
  end

  it "lets other threads run while the Array is made, and makes it once for all of them" do
    frames = Array.new(60) { |depth| ["a.rb", "m#{depth}"] }
    large = { mode: :cpu, frequency: 100,
              samples: Array.new(20_000) { |n| [[["b.rb", "leaf#{n}"], *frames], 1, 1] } }
    Rperf.save(path_to("large.pb.gz"), large)
    loaded = Rperf.load(path_to("large.pb.gz"))
    turns = 0
    other = Thread.new { loop { (turns += 1) && Thread.pass } }
    Thread.pass until turns.positive?
    before = turns
    asking = Array.new(2) { Thread.new { loaded[:samples] } }
    samples = asking.map(&:value)
    expect(turns - before).to be > 3
    expect(samples).to all(be(loaded[:samples]))
    expect(samples.first.size).to eq(20_000)
  ensure
    other&.kill
  end
end
