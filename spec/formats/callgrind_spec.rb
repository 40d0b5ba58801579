# frozen_string_literal: true

# callgrind's format: what other tools read in it.
RSpec.describe "callgrind files" do
  annotate = ENV.fetch("PATH").split(":").any? { |path| File.executable?(File.join(path, "callgrind_annotate")) }
  without_annotate = "no callgrind_annotate: not tested what it makes of our files" unless annotate

  tarai = <<~RUBY
    def tarai(x, y, z) = x <= y ? y : tarai(tarai(x - 1, y, z), tarai(y - 1, z, x), tarai(z - 1, x, y))
    def each_of(list) = list.each { |it| yield it }
    define_method("odd (2) name\\n= x") { 1 }
    tarai(8, 4, 0)
    each_of([1, 2, 3]) { |it| tarai(0, it, 0) }
    5.times { send("odd (2) name\\n= x") }
  RUBY

  # How often each function of a file was called, by the numbers at its calls, with its path in front.
  def calls_by_place(path)
    names = Hash.new { |all, kind| all[kind] = {} }
    last = {}
    File.readlines(path, chomp: true).each_with_object(Hash.new(0)) do |line, calls|
      case line.split("=", 2)
      in ["fl" | "fn" | "cfl" | "cfn" => key, text]
        number, name = text.match(/\A(\(\d+\))(?: (.+))?\z/).captures
        names[key[-2..]][number] = name if name
        last[key] = names[key[-2..]].fetch(number)
      in ["calls", text]
        calls["#{last.delete("cfl") || last["fl"]}:#{last["cfn"]}"] += text.to_i
      else next
      end
    end
  end

  # The same without paths.
  def calls_in(path)
    calls_by_place(path).each_with_object(Hash.new(0)) do |(place, number), calls|
      calls[place.delete_prefix("#{path_to("tarai.rb")}:").sub(%r{\A(?:<[^>]+>|/[^:]*|-e|\?{3}):}, "")] += number
    end
  end

  # The same as callgrind_annotate has it.
  def annotated_calls(path)
    # Names of files in the current directory lose it in some places, but not in others.
    outcome = run("env", "-C", "/", "callgrind_annotate", "--threshold=100", "--auto=no", "--tree=calling", path)
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    calls = outcome.stdout.force_encoding("UTF-8").scan(/> +(.+) \(([\d,]+)x\) \[/)
    calls.each_with_object(Hash.new(0)) { |(name, number), sums| sums[name] += number.delete(",").to_i }
  end

  def write_tarai(*)
    write_file("tarai.rb", tarai_program)
    rperf("trace", *, ruby, "tarai.rb")
  end

  let(:tarai_program) { tarai }

  it "have the calls of a trace, exact, in recursion too" do
    outcome = write_tarai("-o", "tarai.callgrind")
    expect(outcome.stderr).to match(/\Arperf: wrote tarai.callgrind \([\d,]+ calls/)
    path = path_to("tarai.callgrind")
    expect(File.read(path)).to start_with("# callgrind format\nversion: 1\n")
    expect(calls_in(path)).to include(
      "Object#tarai" => 12_605 + 3, "Object#each_of" => 1, "block in Object#each_of" => 3, "block in <main>" => 13
    )
    expect(calls_in(path).keys).to include("Array#each [calls not known]")
  end

  it "are read by callgrind_annotate, which has the same calls", skip: without_annotate do
    write_tarai("--calls", "all", "-o", "callgrind.out.1")
    path = path_to("callgrind.out.1")
    own = calls_by_place(path)
    program = path_to("tarai.rb")
    expect(own).to include("#{program}:Object#tarai" => 12_608, "<C method>:Integer#<=" => 12_608)
    expect(annotated_calls(path)).to eq(own)
  end

  it "are made of a profile, and have its totals" do
    write_tarai
    rperf("report", "--format", "callgrind", "-o", "converted")
    rperf("report", "-o", "by.callgrind")
    expect(File.read(path_to("converted"))).to eq(File.read(path_to("by.callgrind")))
    profile = Rperf.load(path_to("rperf.data"))
    profile.save(path_to("saved.callgrind"))
    expect(File.read(path_to("saved.callgrind"))).to eq(File.read(path_to("converted")))
    events = File.read(path_to("converted"))[/^events: (.*)/, 1].split
    expect(events.first(3)).to eq(%w[wall calls overhead])
    summary = File.read(path_to("converted"))[/^summary: (.*)/, 1].split.map(&:to_i)
    totals = events.map { |name| profile.totals(value: name)[:total] }
    expect(summary).to eq(totals)
  end

  it "have samples for calls where calls were not counted", skip: without_annotate do
    rows = [[[["/app/a.rb", "Object#work"], ["/app/a.rb", "<main>"]], 9_000_000, 1, 0, 9, 0],
            [[["/app/a.rb", "<main>"]], 1_000_000, 1, 0, 1, 0]]
    Rperf.save(path_to("s.data"), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
    rperf("report", "s.data", "-o", "s.callgrind")
    text = File.read(path_to("s.callgrind"))
    expect(text).to include("desc: Calls: not counted: their numbers are samples")
    expect(annotated_calls(path_to("s.callgrind"))).to include("/app/a.rb:Object#work" => 9, "/app/a.rb:<main>" => 10)
  end
end
