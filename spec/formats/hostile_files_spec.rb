# frozen_string_literal: true

require "zlib"

# Everything that reads a profile is given files that are damaged, or made to take memory without end. What exactly
# the reader refuses is tested in crates/rperf-format.
RSpec.describe "hostile files" do
  commands = {
    "report --top" => %w[--top], "report --tree" => %w[--tree], "report --text" => %w[--text --lines],
    "report --callers" => %w[--callers work], "report --annotate" => %w[--annotate work],
    "report --html" => %w[--html -o out], "report --format json" => %w[--format json -o out],
    "report --format collapsed" => %w[--format collapsed -o out], "report --format pprof" => %w[--format pprof -o out]
  }.transform_values { |options| ->(file) { ["report", *options, file] } }
  commands["report of several files"] = ->(file) { ["report", "--top", "good.pb.gz", file] }
  commands["diff --top"] = ->(file) { ["diff", "--top", file, "good.pb.gz"] }
  commands["diff --html"] = ->(file) { ["diff", "--html", "-o", "out", "good.pb.gz", file] }

  # Bytes that a process may have, code and Ruby's own memory included. Some are for what is never written to.
  address_space = 1400 << 20

  def write_binary(name, content) = File.binwrite(path_to(name), content)

  # Runs rperf where there is no more memory to be had than this.
  define_method(:bounded) do |*arguments|
    limited = "Process.setrlimit(:AS, #{address_space}); exec(*ARGV)"
    run(ruby, "-e", limited, *rperf_command(*arguments))
  end

  def expect_refusal(outcome, file, why)
    expect(outcome.stderr).to match(/\Arperf: #{file}: #{why}.*\n\z/)
    expect([outcome.stdout, outcome.status.exitstatus]).to eq(["", 2])
    expect(File).not_to exist(path_to("out"))
  end

  before do
    frames = Array.new(40) { |number| ["/app/file_#{number}.rb", "Thing#work_#{number}"] }
    samples = Array.new(200) { |number| [frames.rotate(number).first((number % 40) + 1), 1_000_000 + number, 1] }
    Rperf.save(path_to("good.pb.gz"), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: })
  end

  commands.each do |name, arguments|
    it "are refused by rperf #{name} in one line" do
      good = File.binread(path_to("good.pb.gz"))
      write_binary("cut", good[0...-20])
      expect_refusal(rperf(*arguments["cut"]), "cut", "the profile can't be read: ")
      flipped = good.dup
      flipped.setbyte(good.size / 2, good.getbyte(good.size / 2) ^ 4)
      write_binary("flipped", flipped)
      expect_refusal(rperf(*arguments["flipped"]), "flipped", "the profile (can't be read|is damaged): ")
      write_binary("text", "<main>;work 10\n")
      expect_refusal(rperf(*arguments["text"]), "text", "not a pprof profile, but collapsed stacks; ")
      # 20 GB.
      write_binary("bomb", Zlib.gzip("\0" * (16 << 20), level: 9) * 1280)
      expect_refusal(bounded(*arguments["bomb"]), "bomb", "the profile is too large: ")
    end
  end

  # A number, seven bits in each byte.
  def varint(number) = number < 128 ? [number].pack("C") : [(number & 127) | 128].pack("C") + varint(number >> 7)

  def field(number, content) = varint((number << 3) | 2) + varint(content.bytesize) + content

  it "that fit but are made of millions of small parts take no more memory than others" do
    head = ["", "cpu", "ns"].map { |text| field(6, text) }.join + field(1, "\x08\1\x10\2".b)
    size = 250 << 20
    {
      "samples" => [field(2, ""), "the profile is damaged: a sample has 0 values"],
      "strings" => [field(6, ""), "the profile is too large: more than 2,097,152 strings"],
      "locations" => [field(4, ""), "the profile is too large: more than 2,097,152 locations"],
      "functions" => [field(5, ""), "the profile is too large: more than 2,097,152 functions"]
    }.each do |name, (part, why)|
      # A gzip file may consist of several.
      write_binary(name, Zlib.gzip(head) + (Zlib.gzip(part * (1 << 20), level: 9) * (size / part.bytesize / (1 << 20))))
      expect_refusal(bounded("report", "--top", name), name, why)
    end
    { "places" => [1, "\1"], "values" => [2, "\1"], "labels" => [nil, field(3, "")] }.each do |name, (number, part)|
      parts = size / part.bytesize / (1 << 20)
      length = parts * part.bytesize * (1 << 20)
      start = number ? varint((number << 3) | 2) + varint(length) : ""
      sample = varint((2 << 3) | 2) + varint(start.bytesize + length) + start
      write_binary(name, Zlib.gzip(head + sample) + (Zlib.gzip(part * (1 << 20), level: 9) * parts))
      expect_refusal(bounded("report", "--top", name), name, "the profile is too large: more than 2,097,152 ")
    end
  end
end
