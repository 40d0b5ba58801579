# frozen_string_literal: true

require "json"

# A server has a process for each worker, or several machines, and so several files.
RSpec.describe "rperf why with several files", vm: true do
  # Requests of one worker: of /orders as many as the second argument says, each with three queries; one of each 40
  # sleeps.
  worker = <<~'RUBY'
    require "rperf/rack"

    QUERIES = -> { 3.times { |id| Rperf.op("SELECT * FROM lines WHERE id = #{id}", kind: :sql) { id.to_s } } }
    app = Rperf::RackMiddleware.new(lambda { |env|
      QUERIES.call
      sleep(0.02) if env["number"] % 40 == 39
      [200, {}, []]
    })
    output, path, count = ARGV
    Rperf.start(mode: :wall, frequency: 1000, measure: %i[requests blame ops], output:) do
      Integer(count).times do |number|
        app.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "number" => number })
      end
    end
  RUBY

  before do
    program = write_file("worker.rb", worker)
    [%w[a.pb.gz /orders 200], %w[b.pb.gz /orders 240], %w[c.pb.gz /cart 120]].each do |arguments|
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program, *arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    end
  end

  def json(*)
    outcome = rperf("why", "--json", *)
    expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  def refusal(*)
    outcome = rperf("why", *)
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
    outcome.stderr
  end

  it "tells of all requests together, and so does Ruby" do
    files = %w[a.pb.gz b.pb.gz c.pb.gz]
    counts = json(*files)[:endpoints].to_h { |it| it.values_at(:name, :requests) }
    expect(counts).to eq("GET /orders" => 440, "GET /cart" => 120)
    orders = json(*files, "orders")
    adds_up(orders, files.first(2).map { |it| json(it, "orders") })
    merged = Rperf.merge(*files.map { |it| path_to(it) })
    expect([merged.why, merged.why("orders")]).to eq([json(*files), orders])
    expect(rperf("why", *files, "GET /orders").stdout.lines.first).to start_with("GET /orders   440 requests ")
    is_written_in_each_form(files)
  end

  # Classes, calls of ops, and the slowest requests.
  def adds_up(both, each)
    classes = each.map { |it| it[:classes] }
    expect(both[:classes]).to eq(classes.reduce { |one, other| one.merge(other) { |_, ours, theirs| ours + theirs } })
    slowest = each.flat_map { |it| it[:slowest] }.map { |it| it[:wall_ns] }.max(5)
    expect(both[:slowest].map { |it| it[:wall_ns] }).to eq(slowest)
    query = include(name: "[SQL] SELECT * FROM lines WHERE id = ?", calls: include(typical: 3.0))
    expect(both[:ops]).to match([query])
    means_add_up(both, each)
  end

  # Each file has whole nanoseconds.
  def means_add_up(both, each)
    sum = ->(of) { of[:means][:running_ns][:typical] * of[:classes][:typical] }
    expect(sum[both]).to be_within(3 * both[:classes][:typical]).of(each.sum(&sum))
  end

  def is_written_in_each_form(files)
    markdown = rperf("why", *files, "--format", "markdown").stdout
    expect(markdown).to match(%r{^\| 440 \|.*GET /orders}).and match(%r{^\| 120 \|.*GET /cart})
    expect(rperf("why", "a.pb.gz", "b.pb.gz", "orders", "-o", "why.md").stdout).to eq("")
    expect(File.read(path_to("why.md"))).to include("440 requests")
  end

  it "takes the last argument as an endpoint if no file has this name" do
    write_file("orders", "no profile")
    Dir.mkdir(path_to("cart"))
    expect(json("a.pb.gz", "endpoint=GET /orders")[:requests]).to eq(200)
    expect(json("a.pb.gz", "c.pb.gz", "cart")[:requests]).to eq(120)
    expect(refusal("a.pb.gz", "orders")).to match(/\Arperf: orders: .*\n\z/)
    expect(refusal("a.pb.gz", "b.pb.g")).to match(/\Arperf: no request is of 'b.pb.g'.*\n\z/)
    expect(refusal("a.pb.gz", "d.pb.gz"))
      .to eq("rperf: no request is of 'd.pb.gz'; there is 'GET /orders'; nor is there a file of this name\n")
  end

  it "refuses what isn't there, and what can't be merged" do
    expect(refusal("d.pb.gz", "a.pb.gz")).to eq("rperf: can't read d.pb.gz: there is no such file\n")
    expect(refusal("a.pb.gz", "orders", "cart")).to eq("rperf: can't read orders: there is no such file\n")
    expect(refusal).to match(/\Arperf: .*FILE.*\n\z/)
    %w[cpu wall].each do |mode|
      expect(rperf("record", "-m", mode, "-o", "#{mode}.pb.gz", ruby, "-e", "1").status).to be_success
    end
    expect(refusal("wall.pb.gz", "wall.pb.gz")).to start_with("rperf: none of these 2 files has requests: ")
    expect(refusal("a.pb.gz", "cpu.pb.gz")).to match(/\Arperf: a.pb.gz and cpu.pb.gz: .*can't be merged.*\n\z/)
  end
end
