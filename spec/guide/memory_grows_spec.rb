# frozen_string_literal: true

# examples/memory_grows: a newspaper with five planted faults, and where the commands of the guide show each of them.
RSpec.describe "The example of growing memory", if: Gem::Platform.local.os == "linux" do
  include Ports

  example = File.join(Commands::ROOT, "examples/memory_grows")
  mb = 1 << 20

  # The newspaper, which answers its readers as soon as it is asked to, and then waits.
  def newspaper(directory)
    listening(<<~RUBY) { |it| yield it.pid }
      require #{File.join(directory, "news").dump}
      app = News.app
      Rperf.start(mode: :wall, measure: :heap)
      ask = lambda do |path, query = ""|
        app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => query })
      end
      puts Rperf.listen
      sleep 0.01 until File.exist?("go")
      readers = Array.new(4) do |number|
        Thread.new do
          Thread.current.name = "reader \#{number}"
          150.times do |n|
            reader = "reader=\#{(number * 1000) + n}"
            ask["/", reader]
            ask["/articles/\#{n % 50}", reader]
            ask["/search", "q=rain"]
            ask["/letters", reader]
            ask["/archive/\#{1900 + (n % 100)}"] if n < 40
          end
          ask["/statistics"] if number == 0
          Thread.current[:done] = true
          sleep
        end
      end
      sleep 0.01 until readers.all? { |it| it[:done] }
      GC.start
      File.write("done", "")
      sleep
    RUBY
  end

  def told(*arguments)
    outcome = rperf(*arguments.map(&:to_s))
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    JSON.parse(outcome.stdout)
  end

  def named(rows, name) = rows.find { |it| it["name"] == name } || raise("no #{name}: #{rows.first(12)}")

  it "has each fault where the guide looks for it", emulated: false, musl: false do
    newspaper(example) do |pid|
      base = [path_to("memory.json"), path_to("heap.json")]
      expect(rperf("memory", pid.to_s, "--objects", "-o", base[0]).status).to be_success
      expect(rperf("heap", pid.to_s, "-o", base[1]).status).to be_success
      File.write(path_to("go"), "")
      wait_until("end of the work") { File.exist?(path_to("done")) }

      holders = told("heap", pid, "--json", "--force")["holders"]
      # 60 Strings for each of 600 articles, 80 for each of 600 searches, and so on, with 80 bytes and more.
      expect(named(holders, "News::Articles::PAGES")["retained_bytes"]).to be > 2.5 * mb
      4.times { expect(named(holders, "Thread \"reader #{it}\"[:recent_searches]")["retained_bytes"]).to be > mb }
      letters = named(holders, "module News::Letters @printed")
      expect(letters["retained_bytes"]).to be > 3 * mb
      expect(letters["path"].map { |it| it["class"] }).to eq(%w[Proc Array String])

      rows = told("memory", "--json", "--objects", "--base", base[0], pid)["rows"]
      # Each has 268 KB, and has touched less.
      expect(named(rows, "malloc_code")["change_bytes"]).to be > 160 * 90 * 1024
      streams = named(told("heap", "--json", "--force", "--base", base[1], pid)["classes"], "Zlib::Deflate")
      expect(streams.dig("change", "objects")).to eq(160)

      small = told("memory", "--json", pid)["pools"].min_by { |it| it["slot_bytes"] }
      expect(small["live"]).to be < 0.5 * small["slots"]
      expect(small["rss_bytes"]).to be > 20 * mb
    end
  end
end
