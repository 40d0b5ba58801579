# frozen_string_literal: true

RSpec.describe "Labels for all samples", vm: true do
  program = "def work(n) = (i = 0; i += 1 while i < n * 1_000_000)\n"
  children = "#{program}Process.wait(fork { work(2) }); work(2)
              system(RbConfig.ruby, '-e', #{"#{program}work(2)".dump})"

  # The values of the label in all rows.
  def values(profile, key)
    profile[:samples].map { |row| profile[:label_sets].to_a.fetch(row[3], {})[key.to_sym] }.uniq
  end

  it "are given to the command, and hold in all processes" do
    rperf("record", "--labels", "release=1.2,host=web\\,1", ruby, "-e", children)
    profile = read_profile(path_to("rperf.data"))
    expect(values(profile, "%pid").size).to eq(3)
    expect([values(profile, "release"), values(profile, "host")]).to eq([["1.2"], ["web,1"]])
    expect(rperf("report", "--by", "label:release", path_to("rperf.data")).stdout).to include("1.2")
  end

  it "are given by a variable, and hold in all processes" do
    env = { "RPERF_ENABLED" => "1", "RPERF_INHERIT" => "1", "RPERF_LABELS" => "release=1.2", "RPERF_OUTPUT" => "p" }
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", children, env:)
    expect(outcome.stderr).to eq("")
    profile = read_profile(path_to("p"))
    expect([values(profile, "%pid").size, values(profile, "release")]).to eq([3, ["1.2"]])
  end

  it "are given to Rperf.start, and hold in snapshots, sections and children" do
    labels = { release: 1.2, "host" => :"a=b,\\", none: nil }
    Rperf.start(mode: :wall, inherit: :fork, labels:)
    sleep 0.01
    snapshot = Rperf.snapshot
    Process.wait(fork { sleep 0.01 })
    [snapshot, Rperf.stop].each do |profile|
      expect([values(profile, "release"), values(profile, "host")]).to eq([["1.2"], ["a=b,\\"]])
      expect(values(profile, "none")).to eq([nil])
    end
    Rperf.start(mode: :wall, defer: true, labels:)
    Rperf.profile(job: "x") { sleep 0.01 }
    expect(Rperf.stop[:label_sets]).to include({ job: "x", release: "1.2", host: "a=b,\\" })
  end

  it "yield to those that the program sets, which they are no part of" do
    profile = Rperf.start(mode: :wall, labels: { phase: "all", release: "1" }) do
      sleep 0.01
      Rperf.label(phase: "one") do
        expect(Rperf.labels).to eq({ phase: "one" })
        sleep 0.01
      end
    end
    expect([values(profile, "phase").sort, values(profile, "release")]).to eq([%w[all one], ["1"]])
  end

  it "may be none" do
    expect(own_label_sets(Rperf.start(labels: {}) { spin(0.01) }) - [{}]).to eq([])
    expect(own_label_sets(Rperf.start(labels: { a: nil }) { spin(0.01) }) - [{}]).to eq([])
  end

  it "are shown by their to_s, whose exceptions come through" do
    mute = Class.new { def to_s = raise(IOError, "no") }.new
    expect { Rperf.start(labels: { a: mute }) }.to raise_error(IOError, "no")
    expect { Rperf.start(labels: { a: BasicObject.new }) }.to raise_error(NoMethodError, /to_s/)
    expect(Rperf).not_to be_running
  end

  it "are refused with the same words wherever they are given" do
    [{ "" => 1 }, "a=b", :a, [[:a, 1]]].each do |labels|
      expect { Rperf.start(labels:) }
        .to raise_error(ArgumentError, "labels: must be a Hash of labels or nil (none), not #{labels.inspect}")
    end
    said = rperf("stat", "--labels", "a", ruby, "-e", "1").stderr
    expect(said).to eq("rperf: --labels must be labels such as release=1.2,host=web1, not 'a'\n")
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "1",
                  env: { "RPERF_ENABLED" => "1", "RPERF_LABELS" => "=" })
    expect(outcome.stderr)
      .to eq("rperf: RPERF_LABELS must be labels such as release=1.2,host=web1, not '='; running without profiling\n")
  end
end
