# frozen_string_literal: true

require "json"

# The files take their time on their own clocks, which the profile is compared with.
RSpec.describe "rperf report --boot", vm: true do
  # Milliseconds of each file's own code.
  own = { "first" => 60, "second" => 30, "deep" => 120, "auto" => 90, "again" => 40 }

  def spend(milliseconds)
    "spent = Process.clock_gettime(Process::CLOCK_MONOTONIC) + #{milliseconds / 1000.0}\n" \
      "nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < spent\n"
  end

  let(:boot) do
    own.each { |name, milliseconds| write_file("#{name}.rb", spend(milliseconds)) }
    File.write(path_to("second.rb"), "require_relative 'deep'\n", mode: "a")
    File.write(path_to("auto.rb"), "Auto = 1\n", mode: "a")
    write_file("app.rb", <<~RUBY)
      $LOAD_PATH.unshift(__dir__)
      autoload :Auto, "auto"
      require "first"
      require "first"
      require "second"
      2.times { load "again.rb" }
      Auto
      #{spend(50)}
    RUBY
    rperf("record", "-m", "wall", "-f", "5000", "-o", "p.pb.gz", ruby, "app.rb")
    outcome = rperf("report", "--boot", "--format", "json", "-n", "0", "p.pb.gz")
    raise outcome.stderr unless outcome.status.success?

    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  def file(name) = boot[:boot][:files].find { |it| it[:short_path] == "#{name}.rb" && it[:kind] == "file" }
  def milliseconds(nanoseconds) = nanoseconds / 1e6

  # The time is measured by clocks that other programs' time is in, too.
  def be_nearly(expected)
    be_between((expected * 0.92) - (5 * Commands::SLOWNESS), (expected * 1.08) + (15 * Commands::SLOWNESS))
  end

  it "has each file's own time, that of those that it loads, and the line that loads it" do
    expected = own.merge("again" => 80, "app" => 50)
    expected.each { |name, time| expect(milliseconds(file(name)[:own])).to be_nearly(time), name }
    expect(milliseconds(file("second")[:total])).to be_nearly(150)
    expect(milliseconds(file("app")[:total])).to be_nearly(430)
    lines = { "first" => 3, "second" => 5, "deep" => 3, "again" => 6, "auto" => 7 }
    expect(lines.keys.to_h { |name| [name, file(name)[:from][:line]] }).to eq(lines)
  end

  it "adds up to the time in which files are loaded" do
    files, total = boot[:boot].values_at(:files, :total)
    expect(files.sum { |it| it[:own] + it[:load] }).to eq(total)
    expect(boot[:boot][:gems].sum { |it| it[:self] }).to eq(total)
    expect(total).to be <= boot[:left]
    expect(total).to be > 0.9 * boot[:left]
  end

  it "is a page for people, too, and says if nothing was loaded" do
    boot
    page = rperf("report", "--boot", "-n", "3", "p.pb.gz")
    expect(page.stdout).to match(/^Loading \d+ files: .*^ *own +load +total +total% +file$/m)
    expect(page.stdout).to include(" deep.rb (from second.rb:3)\n")
    expect(page.stdout).to match(/^By gem .*\(application\)$.*^Which file loads which.* deep\.rb$/m)
    expect(rperf("report", "--boot", "--ignore", ".", "p.pb.gz").stdout).to end_with("No files were loaded.\n")
    expect(rperf("report", "--boot", "--tree", "p.pb.gz").stderr).to match(/--tree.*--boot|--boot.*--tree/)
  end

  it "refuses a trace, which has no samples" do
    rperf("trace", "-o", "t.pb.gz", ruby, "-e", "[1].each { |it| it + 1 }")
    [[], ["--format", "json"]].each do |format|
      outcome = rperf("report", "--boot", *format, "t.pb.gz")
      expect([outcome.status.exitstatus, outcome.stdout, outcome.stderr])
        .to match([2, "", /\Arperf: --boot needs samples, .*\n\z/])
    end
  end
end
