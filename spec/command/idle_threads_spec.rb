# frozen_string_literal: true

require "json"

# What waits for work is told from what waits within work, and hidden with a line that says how much it is.
RSpec.describe "idle threads" do
  def report(*) = rperf("report", "--top", *)

  # ms that a line says to be hidden; nil if there is none.
  def hidden(text) = text[/^Idle threads: ([\d,.]+) ms hidden, --idle shows them$/, 1]&.delete(",")&.to_f

  it "are told from nothing where a filter leaves nothing else" do
    waiting = [["<GVL>", "[GVL blocked]"], ["<internal:thread_sync>", "Thread::Queue#pop"], ["app.rb", "block in work"]]
    profile = made_profile
    profile[:samples] << [waiting, 10_000_000, 2, 0]
    Rperf.save(path_to("rperf.data"), profile)
    hint = " but idle threads, which are hidden; --idle shows them"
    { "2" => hint, "3" => "" }.each do |name, told|
      expect(report("--thread", name).stderr).to eq("rperf: --thread matches nothing in the profile#{told}\n")
    end
  end

  describe "of a program with a pool of its own, Timeout's thread and work" do
    before do
      write_file("app.rb", <<~RUBY)
        require "timeout"
        Timeout.timeout(5) { nil }
        jobs = Thread::Queue.new
        results = Thread::Queue.new
        def query = sleep(0.1)
        pool = Array.new(3) do |number|
          Thread.new do
            Thread.current.name = "pool \#{number}"
            while (job = jobs.pop)
              results << job.call
            end
          end
        end
        def wait_for(results) = results.pop
        2.times { jobs << -> { query } }
        2.times { wait_for(results) }
        sleep 0.3
        jobs.close
        pool.each(&:join)
      RUBY
    end

    # Newer versions of the gem have it in Timeout::State.
    let(:timeout) { /block (?:\(2 levels\) )?in Timeout[\w:.#]*create_timeout_thread/ }

    it "are left out of tables with a line, and shown with --idle" do
      rperf("record", "-m", "wall", ruby, "app.rb")
      text = report("-n", "0").stdout
      expect(hidden(text)).to be_between(800, 20_000)
      expect(text).to include("Object#query", "Object#wait_for", "Kernel#sleep")
      # The main thread makes it.
      row = /([\d,.]+) ms +[\d.]+%  #{timeout}/
      in_timeout = ->(page) { page[row, 1].to_s.delete(",").to_f }
      expect(in_timeout[text]).to be < 150
      all = report("--idle", "-n", "0").stdout
      expect(hidden(all)).to be_nil
      sum = ->(page) { page[/^Type: wall, ([\d,.]+) ms/, 1].delete(",").to_f }
      expect(sum[all]).to be_within(1).of(sum[text] + hidden(text))
      expect(in_timeout[all]).to be > 300
      %w[--tree --methods].each { |view| expect(hidden(rperf("report", view).stdout)).to eq(hidden(text)) }
      %w[text markdown dot].each do |format|
        said = /Idle threads:? .*hidden, --idle shows them/
        expect(rperf("report", "--format", format).stdout).to match(said)
        expect(rperf("report", "--format", format, "--idle").stdout).not_to match(said)
      end
    end

    it "are in what is written for programs, which says how much they are" do
      rperf("record", "-m", "wall", ruby, "app.rb")
      json = JSON.parse(rperf("report", "--format", "json").stdout)
      expect(json["idle"]).to be_between(800_000_000, json["total"] - 1)
      expect(json["top"].map { |row| row["name"] }).to include("[GVL blocked]")
      expect(json["total"]).to eq(json["left"])
      expect(rperf("report", "--format", "collapsed").stdout)
        .to match(/^#{timeout};.*;\[GVL blocked\] \d{9,}$/)
      profile = Rperf.load(path_to("rperf.data"))
      expect(profile.totals[:idle]).to eq(json["idle"])
      without = profile.totals(idle: false)
      expect(without.values_at(:total, :idle)).to eq([json["total"] - json["idle"], json["idle"]])
      expect(profile.filter(idle: false).totals[:total]).to eq(without[:total])
      expect { profile.top(idle: 1) }.to raise_error(ArgumentError, "idle: must be true or false, not 1")
      profile.save(path_to("x.txt"))
      expect(File.read(path_to("x.txt"))).to match(/^Idle threads: /)
    end

    it "have a line in stat without a share, and are blocked with --idle" do
      blocked = lambda do |page|
        page[/([\d,.]+) ms +[\d.]+%  \[Ruby\] GVL blocked/, 1].delete(",").to_f
      end
      page = rperf("stat", ruby, "app.rb").stderr
      expect(page).to match(/^ +[\d,.]+ ms          +\[Ruby\] idle threads \(wait for work; --idle: GVL blocked\)$/)
      expect(blocked[page]).to be_between(500, 5_000)
      all = rperf("stat", "--idle", ruby, "app.rb").stderr
      expect(all).not_to include("idle threads")
      expect(blocked[all]).to be > blocked[page] + 500
    end

    it "are not compared, unless that is asked for" do
      2.times { |number| rperf("record", "-m", "wall", "-o", "#{number}.data", ruby, "app.rb") }
      text = rperf("diff", "--top", "0.data", "1.data").stdout
      expect(text).to match(/^Idle:   [\d,.]+ ms in the base and [\d,.]+ ms in the target hidden, --idle shows them$/)
      json = JSON.parse(rperf("diff", "--format", "json", "0.data", "1.data").stdout)
      expect(json["idle"].values).to all(be > 800_000_000)
      all = JSON.parse(rperf("diff", "--format", "json", "--idle", "0.data", "1.data").stdout)
      expect(all["idle"].values).to eq([0, 0])
      expect(all["total"]["base"]).to be_within(2).of(json["total"]["base"] + json["idle"]["base"])
    end
  end

  it "are none in a plain script, whose threads sleep and whose main thread waits" do
    write_file("app.rb", <<~RUBY)
      def wait_in_method(queue) = queue.pop
      queue = Thread::Queue.new
      threads = Array.new(3) { Thread.new { sleep 0.1 } }
      sleep 0.05
      Thread.new { sleep(0.05) && queue.push(1) }
      wait_in_method(queue)
      threads.each(&:join)
    RUBY
    rperf("record", "-m", "wall", ruby, "app.rb")
    text = report("-n", "0").stdout
    expect(hidden(text)).to be_nil
    expect(text).to include("Thread::Queue#pop", "Object#wait_in_method", "Kernel#sleep")
    expect(JSON.parse(rperf("report", "--format", "json").stdout)["idle"]).to eq(0)
  end

  it "are shown if there is nothing else" do
    pop = ["<internal:thread_sync>", "Thread::Queue#pop"]
    frames = [["<GVL>", "[GVL blocked]"], pop, ["app.rb", "block in Pool#start"]]
    save = lambda do |rows|
      Rperf.save(path_to("rperf.data"), { mode: :wall, frequency: 1000, samples: rows })
      report("-n", "0").stdout
    end
    expect(hidden(save[[[frames, 10_000_000, 2]]])).to be_nil
    expect(hidden(save[[[frames, 10_000_000, 2], [[["app.rb", "<main>"]], 1_000_000, 1]]])).to eq(10.0)
  end

  it "leave shares of the rest, and with --relative shares are of what the filters leave" do
    stack = ->(method) { [["a.rb", method], ["a.rb", "<main>"]] }
    rows = [[stack["A#a"], 30_000_000, 1], [stack["B#b"], 70_000_000, 1]]
    Rperf.save(path_to("rperf.data"), { mode: :wall, frequency: 1000, samples: rows })
    expect(report("--focus", "A#").stdout).to match(/30.0 ms  30.0% .* A#a/)
    text = report("--focus", "A#", "--relative").stdout
    expect(text).to match(/30.0 ms  100.0% .* A#a/)
      .and include("Type: wall, 100.0 ms, of which 30.0 ms (30.0%) are left; shares are of these")
    outcome = rperf("report", "--relative", "--format", "json")
    expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /\Arperf: --relative goes with --top, /])
  end

  describe "of Puma", skip: Servers.missing("puma", "rack") do
    include Servers

    it "are its own, and what requests wait for is shown" do
      write_file("config.ru", <<~RUBY)
        require "rperf/rack"
        use Rperf::RackMiddleware
        def query = sleep(0.02)
        run ->(_) { query && [200, {}, ["ok"]] }
      RUBY
      server = start_puma(under: rperf_command("record", "-m", "wall", "-o", "rperf.data"))
      server.get_all(["/"] * 20)
      sleep Commands::SLOWNESS
      stop_server(server)
      text = report("--by", "thread").stdout
      expect(hidden(text)).to be > 3_000
      json = JSON.parse(rperf("report", "--format", "json").stdout)
      expect(json["idle"]).to be > 0.7 * json["total"]
      rows = report("--sort", "total", "--by", "label:endpoint").stdout
      expect(rows).to match(%r{[\d,]{3,}\.\d ms .* GET /$})
      expect(report("--sort", "total").stdout).to include("Kernel#sleep", ".query (config.ru)")
    end
  end
end
