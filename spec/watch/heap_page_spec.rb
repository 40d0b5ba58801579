# frozen_string_literal: true

require "json"
require "net/http"
require "zlib"

# The viewer's page with the objects of a program in it. The behaviour of the page is tested in viewer/.
RSpec.describe "the page of rperf heap" do
  include Ports

  kept = {
    version: 1, kind: "rperf heap", pid: 4711, program: "</script>@RPERF_DATA@", ruby: RUBY_VERSION, time_ns: 1,
    elapsed_ns: 2, started: 3, whole: true, total: { objects: 2, bytes: 80 }, unreferenced: { objects: 0, bytes: 0 },
    references: 1, classes: [], holders: [], tree: nil, paths: nil, sites: nil
  }

  before { write_file("kept.json", JSON.generate(kept)) }

  # The JSON embedded in a page.
  def json_in(page)
    embedded = page[%r{<script type="application/x-rperf" id="profile">([A-Za-z0-9+/=]+)</script>}, 1]
    JSON.parse(Zlib.gunzip(embedded.unpack1("m")))
  end

  def heap(*) = rperf("heap", *)

  def refusal_of(*)
    outcome = heap(*)
    expect([outcome.stdout, outcome.status.exitstatus, outcome.stderr.lines.size]).to eq(["", 2, 1]), outcome.stderr
    outcome.stderr
  end

  it "is one file, and has the JSON of a file" do
    outcome = heap("kept.json", "--html")
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, ""])
    expect(outcome.stderr).to match(/\Arperf: wrote rperf\.html \([\d,]+ KB\)\n\z/)
    page = File.read(path_to("rperf.html"))
    expect(page).not_to include("@RPERF_DATA@")
    expect(json_in(page)).to eq(JSON.parse(heap("kept.json", "--json").stdout))
    expect(json_in(page)).to eq(JSON.parse(JSON.generate(kept)))
    [%w[-o a.html], %w[--html -o b]].each do |arguments|
      expect(heap("kept.json", *arguments).status).to be_success
      expect(File.read(path_to(arguments.last))).to eq(page)
    end
    expect(heap("kept.json", "--html", "-o", "-").stdout.b).to eq(page.b)
  end

  it "writes what an option asks for, whatever the file's name is" do
    expect(heap("kept.json", "--json", "-o", "a.txt").status).to be_success
    expect(heap("kept.json", "-o", "b").status).to be_success
    expect(heap("kept.json", "--html", "-o", "c.txt").status).to be_success
    rows = %w[a.txt b].map { |name| JSON.parse(File.read(path_to(name))) }
    expect([*rows, json_in(File.read(path_to("c.txt")))]).to all(eq(JSON.parse(JSON.generate(kept))))
  end

  it "takes files of earlier versions, which have no tree" do
    write_file("old.json", JSON.generate(kept.except(:tree, :paths, :sites)))
    expect(heap("old.json", "--html", "-o", "old.html").status).to be_success
    expect(json_in(File.read(path_to("old.html")))).to include("pid" => 4711, "tree" => nil)
  end

  it "is served at its address" do
    reader, writer = IO.pipe
    pid = Process.spawn({ "SSH_TTY" => nil, "SSH_CONNECTION" => nil },
                        *rperf_command("heap", "kept.json", "--web", "--no-browser"),
                        chdir: directory, out: File::NULL, err: writer)
    writer.close
    expect(reader.wait_readable(Commands::TIME_LIMIT)).not_to be_nil
    address = URI(reader.gets[%r{http://127\.0\.0\.1:\d+/\h{32}/}])
    answer = Net::HTTP.get_response(address)
    expect(json_in(answer.body)).to eq(JSON.parse(JSON.generate(kept)))
    expect(answer["Content-Security-Policy"]).to include("default-src 'none'", "frame-ancestors 'none'")
    Process.kill(:INT, pid)
    expect(Process.wait2(pid).last).to eq(0)
    pid = nil
  ensure
    reader&.close
    if pid
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  it "refuses what it can't have" do
    {
      %w[--html --web] => /--web and --html can't be combined/,
      %w[--html --json] => /--html and --json can't be combined/,
      %w[--html --base kept.json] => /leave --base out/,
      %w[-o a.html --base kept.json] => /leave --base out/,
      %w[--web -n 3] => /the viewer has all rows: leave -n out/,
      %w[--web -o a.html] => /--web writes no file/,
      %w[--html --no-browser] => /--no-browser goes with --web/,
      %w[--html --class A] => /ask the program, by its PID/,
      %w[--html --force] => /--force is for a program/,
      %w[--html -o none/a.html] => %r{none/a\.html}
    }.each { |arguments, message| expect(refusal_of("kept.json", *arguments)).to match(message) }
    %w[csv PNG svg txt json.gz pb].each do |extension|
      kind = extension.downcase[/\w+\z/]
      expect(refusal_of("kept.json", "-o", "a.#{extension}")).to eq(
        "rperf: -o a.#{extension}: rperf heap writes no .#{kind}: .json has all rows, .html is the viewer's page\n"
      )
      expect(File.exist?(path_to("a.#{extension}"))).to be(false)
    end
    write_file("other.json", "{}")
    expect(refusal_of("other.json", "--html")).to include("other.json: it is no file of 'rperf heap -o'")
    expect(File.exist?(path_to("rperf.html"))).to be(false)
  end

  describe "of a running program", emulated: false, if: Gem::Platform.local.os == "linux" do
    program = <<~RUBY
      class Node
        attr_accessor :next_node
        def initialize(next_node) = @next_node = next_node
      end
      class Cart
        def initialize = @items = Array.new(10) { "x" * 10_000 }
      end
      # In threads, whose stacks have gone: what is left on a stack holds objects as well.
      CARTS = Thread.new { Array.new(100) { Cart.new } }.value
      $list = nil
      Thread.new { 1000.times { $list = Node.new($list) } }.join
      GC.start
      puts Rperf.listen
      sleep
    RUBY

    def below(rows, *keys)
      number = nil
      keys.each do |key|
        number = rows.index { |it| it["parent"] == number && it.values_at("name", "class") == key }
        raise "no #{key}" unless number
      end
      rows[number]
    end

    it "has the tree of dominators, whose rows add up" do
      listening(program) do |running|
        outcome = heap(running.pid.to_s, "--html", "--class", "Cart")
        expect(outcome.stderr).to match(/\Arperf: wrote rperf\.html/)
        json = json_in(File.read(path_to("rperf.html")))
        rows = json["tree"]
        expect(json["paths"].first).to include("holder" => "CARTS", "objects" => 100)

        expect(below(rows, %w[CARTS Array], ["", "Cart"], ["@items", "Array"], ["", "String"])["objects"])
          .to be_between(980, 1000)
        carts = below(rows, %w[CARTS Array])
        expect(carts["retained_bytes"]).to eq(json["holders"].find { |it| it["name"] == "CARTS" }["retained_bytes"])
        expect(carts["retained_bytes"]).to be_within(0.1 * 10_000_000).of(10_000_000)
        expect(below(rows, ["$list", "Node"], ["@next_node", "Node"])["retained_objects"]).to be_between(900, 1000)
        expect(below(rows, ["rperf", ""])["retained_bytes"]).to be > 1000
        sums = %w[objects bytes].map do |key|
          below = rows.group_by { |it| it["parent"] }.transform_values { |all| all.sum { |it| it["retained_#{key}"] } }
          own = rows.each_with_index.map { |it, number| it[key] + below.fetch(number, 0) }
          expect(own).to eq(rows.map { |it| it["retained_#{key}"] })
          below[nil]
        end
        expect(sums).to eq(%w[objects bytes].map { |it| json["total"][it] - json["unreferenced"][it] })
      end
    end
  end
end
