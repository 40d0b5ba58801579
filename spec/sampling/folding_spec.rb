# frozen_string_literal: true

# A call tree that is full keeps its leaves.
RSpec.describe "a full call tree", vm: true do
  # Methods that call each other at random, so that nearly all stacks are different. At the end of
  # each two methods compute, one three times as long as the other.
  let(:program) { write_file("random_calls.rb", <<~'RUBY') }
    METHODS = 2_000
    def long = (count = 3_000; count -= 1 while count > 0)
    def short = (count = 1_000; count -= 1 while count > 0)
    eval((0...METHODS).map { |i| "def m#{i}(depth) = depth.zero? ? (long; short) : __send__(NAMES.sample, depth - 1)" }.join("\n"))
    NAMES = (0...METHODS).map { |i| :"m#{i}" }
    stop = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + Float(ARGV[0])
    m0(rand(20..50)) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
  RUBY

  def record(seconds, *arguments)
    rperf("record", "-f", "5000", "-o", path_to("p.pb.gz"), *arguments, ruby, program, seconds.to_s)
    read_profile(path_to("p.pb.gz"))
  end

  # The names of each stack, innermost first, and its time.
  def stacks(data) = data[:samples].map { |frames, ns| [frames.map(&:last), ns] }

  def time(stacks) = stacks.sum(&:last)

  it "has all flat times, and says how much of them it has folded", alone: true do
    data = record(3, "--max-nodes", "10000")
    expect(data.values_at(:truncated_samples, :dropped_samples)).to eq([0, 0])
    all = stacks(data)
    folded = all.select { |names,| names.include?("[folded]") }
    expect(data[:folded_ns]).to eq(time(folded))
    expect(data[:folded_samples]).to be_positive
    expect(time(folded)).to be > time(all) * 0.3
    # Each has its leaf, right below; what the collector does is shown below that.
    below = folded.map { |names,| names.take_while { |name| name != "[folded]" }.grep_v(/\A\[GC/) }
    expect(below.map(&:size).uniq).to eq([1])
    long, short = %w[long short].map { |name| time(all.select { |names,| names.first == "Object##{name}" }) }
    expect(long.fdiv(long + short)).to be_within(0.1).of(0.75)
    # The rest is the start of Ruby, and the calls.
    expect(long + short).to be > time(all) * 0.4
  end

  it "folds nothing that has room" do
    data = record(0.3, "--max-nodes", "4000000")
    expect(data.values_at(:truncated_samples, :folded_samples, :folded_ns)).to eq([0, 0, 0])
    expect(stacks(data).flat_map(&:first)).not_to include("[folded]")
  end

  it "keeps to the limit, and its report says what was folded" do
    data = record(1.5, "--max-nodes", "10000")
    nodes = stacks(data).flat_map { |names,| (1..names.size).map { |depth| names.last(depth) } }.uniq.size
    expect(nodes).to be_between(3_000, 10_000)
    text = rperf("report", "--text", path_to("p.pb.gz")).stdout
    expect(text).to match(/^Lost: .*\d stacks folded \([\d,.]+ ms\)/)
    json = JSON.parse(rperf("report", "--format", "json", path_to("p.pb.gz")).stdout)
    expect(json["losses"]["folded_ns"]).to eq(data[:folded_ns])
    expect(json["top"].first["name"]).to eq("Object#long")
  end
end
