# frozen_string_literal: true

# A program with a leak of known rate, a cache that turns over and one that is filled in the beginning: only the leak
# is said to grow.
RSpec.describe "rperf leak", vm: true, emulated: false, if: Gem::Platform.local.os == "linux" do
  include Ports

  per_second = 3000
  slot = 640 # A Struct of so many members has the largest slots.
  code = <<~RUBY
    MEMBERS = (1..70).map { |number| :"m\#{number}" }
    Leaked, Cached, Warm = Array.new(3) { Struct.new(*MEMBERS) }
    class Shop
      LEAK = {}
      CACHE = {}
      WARM = []
      def leak = LEAK[LEAK.size] = Leaked.new
      def cache(key)
        CACHE[key] = Cached.new
        CACHE.shift if CACHE.size > 500
      end
      def warm = WARM << Warm.new
    end
    shop = Shop.new
    600.times { |it| shop.cache(it) }
    now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    puts Rperf.listen
    sleep 0.01 until File.exist?("go")
    began, key = now.(), 1000
    until File.exist?("end")
      elapsed = now.() - began
      shop.leak while LEAKS && Shop::LEAK.size < elapsed * #{per_second}
      shop.warm while Shop::WARM.size < [elapsed, 2.4].min * 2500
      50.times { shop.cache(key += 1) }
      GC.start(full_mark: false)
      sleep 0.02
    end
  RUBY

  # A program with this code that has begun; `leaks`: whether it does.
  def watched(code, leaks: true, **)
    listening("LEAKS = #{leaks}\n#{code}", **) do |program|
      File.write(path_to("go"), "")
      yield program.pid
    end
  end

  def leak(*arguments, time: "3.6s", **, &)
    rperf("leak", "--force", "--every", "0.3s", "--for", time, *arguments.map(&:to_s), **, &)
  end

  def found_by(outcome)
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    JSON.parse(outcome.stdout)
  end

  def growing(rows) = rows.select { |it| it["bytes"]["verdict"] == "grows" }

  def refusal(*arguments)
    outcome = rperf("leak", *arguments.map(&:to_s))
    expect([outcome.stdout, outcome.stderr.lines.size]).to eq(["", 1])
    [outcome.status.exitstatus, outcome.stderr]
  end

  it "names the class that leaks and its rate, and neither a cache nor what warms up" do
    watched(code) do |pid|
      # A busy machine makes fewer looks.
      found = found_by(leak("--json", "--limit", "4G", pid, time: "12s"))
      expect(found["looks"].size + found["failed"]).to be_between(4, 41)
      rows = growing(found["classes"]["rows"]).to_h { |it| [it["name"], it] }
      expect(rows.keys).to include("Leaked")
      expect(rows.keys & %w[Cached Warm]).to be_empty
      expect(rows["Leaked"]["objects"]["per_hour"]).to be_within(0.25 * 3600 * per_second).of(3600 * per_second)
      rate = 3600 * per_second * slot
      expect(rows["Leaked"]["bytes"]["per_hour"]).to be_within(0.25 * rate).of(rate)
      expect(found["limit_bytes"]).to eq(4 << 30)
      expect(found["sites"]).to be_nil
    end
  end

  it "names the line that leaks where a session measures heap, keeps that, and shows it" do
    watched(code,
            env: { "RPERF_ENABLED" => "1", "RPERF_MEASURE" => "heap", "RPERF_MAX_OVERHEAD" => "100",
                   "RPERF_OUTPUT" => path_to("end.data") }) do |pid|
      # A busy machine makes fewer looks, and samples need some.
      outcome = leak("-o", "leak.json", pid, time: "16s")
      expect(outcome.stderr).to match(/\Arperf: wrote leak.json \(\d+ looks\)\n\z/)
      found = JSON.parse(File.read(path_to("leak.json")))
      sites = growing(found["sites"]["rows"])
      expect(sites.map { |it| it.values_at("method", "class") }).to include(["Shop#leak", "Leaked"])
      expect(sites.map { |it| it["class"] } & %w[Cached Warm]).to be_empty
      site = sites.find { |it| it["class"] == "Leaked" }
      rate = 3600 * per_second * slot
      expect(site["bytes"]["per_hour"]).to be_within(0.5 * rate).of(rate)
      expect(site["line"]).to eq(1 + code.lines.index { |it| it.include?("def leak") } + 2)
      page = rperf("leak", "leak.json").stdout.dup.force_encoding("UTF-8")
      expect(page).to match(/^RSS [\d.]+ MB /).and match(/^ *\+\d.*  Leaked$/).and match(/\(-e:\d+\)  Leaked$/)
      expect(page).to match(/^[\d,]+ classes show no clear growth\.$/)
    end
  end

  it "says that nothing grows, and how to get sites" do
    watched(code, leaks: false) do |pid|
      sleep 2.7 # So that it is warm.
      outcome = leak(pid)
      page = outcome.stdout.dup.force_encoding("UTF-8")
      expect(page).to include("No class grows").and include("RPERF_MEASURE=heap")
      expect(page).not_to match(/^ *\+\d.*  (Leaked|Cached|Warm)$/)
    end
  end

  it "prints what it has when the program ends, or at Ctrl-C" do
    watched(code) do |pid|
      ender = Thread.new do
        sleep 8
        File.write(path_to("end"), "")
      end
      outcome = rperf("leak", "--force", "--every", "0.3s", "--for", "100s", "-n", "3", pid.to_s)
      ender.join
      expect([outcome.stderr,
              outcome.status.exitstatus]).to eq(["rperf: #{pid} has ended: this is of the time before\n", 0])
      expect(outcome.stdout.dup.force_encoding("UTF-8")).to match(/ looks in \d+ s.*\n.*RSS /m)
    end
    File.delete(path_to("end"))
    watched(code) do |pid|
      command = rperf_command("leak", "--force", "--every", "0.3s", "--for", "100s", "--json", pid.to_s)
      child = Process.spawn(clean_environment, *command, chdir: directory, out: path_to("found"))
      sleep 8
      Process.kill(:INT, child)
      Process.wait(child)
      expect(Process.last_status.exitstatus).to eq(0)
      expect(JSON.parse(File.read(path_to("found")))["looks"].size).to be_between(3, 34)
    end
  end

  it "waits with its first look where another command has just looked at the program" do
    watched(code) do |pid|
      expect(rperf("heap", "-o", "just.json", pid.to_s).status).to be_success
      command = rperf_command("leak", pid.to_s)
      child = Process.spawn(clean_environment, *command, chdir: directory, out: path_to("found"), err: path_to("said"))
      sleep 16
      Process.kill(:INT, child)
      Process.wait(child)
      expect(File.read(path_to("said"))).to eq("rperf: #{pid}: 3 looks are needed to tell what grows, not 1\n")
      expect(Process.last_status.exitstatus).to eq(1)
    end
  end

  it "takes files of rperf heap" do
    watched(code) do |pid|
      3.times do |number|
        expect(rperf("heap", "--force", "-o", "#{number}.json", pid.to_s).status).to be_success
        sleep 1.1 # Files less than a second apart are refused.
      end
    end
    found = found_by(rperf("leak", "--json", "2.json", "0.json", "1.json"))
    expect(found["looks"].map { |it| it["time_ns"] }).to eq(found["looks"].map { |it| it["time_ns"] }.sort)
    expect([found["looks"].size, found["rss"]]).to eq([3, nil])
    found = JSON.parse(File.read(path_to("0.json")))
    live = %w[objects bytes].map { |it| found["total"][it] - found["unreferenced"][it] }
    look = found_by(rperf("leak", "--json", "2.json", "0.json", "1.json"))["looks"].first
    expect(look.values_at("objects", "bytes")).to eq(live)
    write_file("other.json", JSON.generate(found.merge("started" => found["started"] + 1)))
    expect(refusal("other.json", "1.json", "2.json")).to match([2, /two processes with the number \d+/])
    write_file("other.json", JSON.generate(found.merge("program" => "worker: busy")))
    expect(rperf("leak", "other.json", "1.json", "2.json").status).to be_success
    expect(refusal("--limit", "2G", "0.json", "1.json", "2.json")).to match([2, /--limit is for the RSS/])
    expect(refusal("0.json")).to match([2, /one look tells nothing/])
    expect(refusal("0.json", "1.json", "0.json")).to match([2, /0.json and 0.json are looks at the same time/])
    expect(refusal("0.json", "1.json")).to match([1, /3 looks are needed/])
  end

  it "refuses what makes no sense" do
    expect(refusal(1, "--every", "5s")).to match([2, /--every must be 10s or more.*--force/])
    expect(refusal(1, "--every", "soon")).to match([2, /--every must be a time with its unit, such as .* not 'soon'/])
    expect(refusal(1, "--every", "1m", "--for", "90s")).to match([2, /--for must be twice --every/])
    expect(refusal(1, "--limit", "much")).to match([2, /--limit must be a size, such as .* not 'much'/])
    %w[csv html md].each do |kind|
      expect(refusal(1, "-o", "a.#{kind}")).to match([2, /-o a\.#{kind}: rperf leak writes no \.#{kind}: \.json has/])
      expect(File.exist?(path_to("a.#{kind}"))).to be(false)
    end
    expect(refusal(1, 2)).to match([2, /one process, or files/])
    expect(refusal(99_999_999)).to match([1, /there is no process 99999999/])
    expect(refusal("nothing.json")).to match([2, /nothing.json/])
    write_file("other.json", "{}")
    expect(refusal("other.json")).to match([2, /other.json: it is no file of 'rperf leak -o'/])
    expect(refusal("other.json", "--every", "1m")).to match([2, /--every is for a program/])
    expect(refusal("other.json", "-n", "x")).to match([2, /-n x: rows are a number/])
  end
end
