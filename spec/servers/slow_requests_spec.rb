# frozen_string_literal: true

# spec/support/apps/slow_shop.ru under Puma: which requests were slow by the app's own clock, and which ones rperf says.
RSpec.describe "Slow requests of a server, at 100 Hz", skip: Servers.missing("puma") do
  include Servers

  # So many requests for each page, over so many connections; every `hog` seconds a job keeps the GVL for 90 ms.
  def serve(orders:, cart:, about:, hog:)
    under = rperf_command("record", "-f", "100", "-m", "wall", "--measure", "requests,blame", "-o", "shop.data", "--")
    server = start_puma("-t", "5:5", app: app("slow_shop.ru"), under:,
                                     env: { "TIMES" => path_to("times"), "HOG_EVERY" => hog.to_s })
    clients = { "orders" => orders, "cart" => cart, "about" => about }.map do |page, count|
      Thread.new { get_pages(server, page, count) }
    end
    expect(clients.flat_map(&:value).uniq).to eq(["200"])
    outcome = stop_server(server, signal: :INT)
    expect([outcome.status, outcome.messages]).to match([be_success, [/\Arperf: wrote shop\.data/]]), server.output
  end

  # A customer for each page, who pauses for a while.
  def get_pages(server, page, count)
    Net::HTTP.start(Servers::HOST, server.port, open_timeout: nil) do |http|
      Array.new(count) do |number|
        sleep(0.002)
        http.get("/#{page}/#{number}").code
      end
    end
  end

  # The classes of each request that has samples, by its number.
  def classes
    data = Rperf.load(path_to("shop.data"))
    sets = data[:label_sets].map { |set| set.values_at(:number, :"%latency") }
    data[:samples].map { |sample| sets[sample[3]] }.uniq.group_by(&:first).except(nil).transform_values do |pairs|
      pairs.map(&:last)
    end
  end

  def why(*arguments)
    outcome = rperf("why", path_to("shop.data"), *arguments)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    outcome.stdout
  end

  # A request of these pages that takes so long, by the app's own clock, is slow.
  let(:slow_from) { { "orders" => 200_000_000, "cart" => 40_000_000, "about" => 40_000_000 } }

  # Of each page, without its first 100, which are judged by nothing: how many are slow, and how many others there are;
  # how many of the slow ones are in the tail, and how many of the others.
  def judged
    known = classes
    expect(known.values.map(&:size).uniq).to eq([1]), "each request has one class"
    JSON.parse(File.read(path_to("times"))).group_by(&:first).to_h do |page, rows|
      classes_of = counted(page, rows.size)
      slow = rows.select { |_, number, ns| number >= 100 && ns >= slow_from.fetch(page) }
      tail = slow.count { |_, number, _| known["#{page} #{number}"] == ["tail"] }
      [page, { slow: slow.size, others: rows.size - 100 - slow.size, tail:,
               others_in_tail: classes_of.fetch("tail") - tail }]
    end
  end

  # How many of the page's requests have each class, as the table has it.
  def counted(page, requests)
    answer = JSON.parse(why("--json", "GET /#{page}/:id"))
    expect(answer.values_at("requests", "classes")).to match([requests, include("first" => 100)])
    answer["classes"]
  end

  def expect_causes_named
    orders, cart = %w[orders cart].map { |page| JSON.parse(why("--json", "GET /#{page}/:id")) }
    slept = orders["sites"]["blocked_ns"].first
    expect(slept.values_at("app", "method").map { |it| it["name"] }).to eq(["Shop#slow_query", "Kernel#sleep"])
    expect(cart["holders"].first).to include("name" => "job=ExportJob", "app" => include("name" => "Hog#spin"))
    all = why
    expect(all).to match(%r{^GET /orders/:id  .*\n.* blocked: Kernel#sleep, in Shop#slow_query  .*slow_shop.ru:\d+$})
    expect(all).to match(%r{^GET /cart/:id  .*\n.* GVL wait: had by job=ExportJob \d+ %: .*Hog#spin })
  end

  def expect_judged(all, tail:, others:)
    all.each do |page, of|
      expect([page, of]).to match([page, include(tail: be >= tail * of[:slow],
                                                 others_in_tail: be < others * of[:others])])
    end
  end

  it "are in the tail, with their method and who had the GVL" do
    serve(orders: 600, cart: 600, about: 200, hog: 0.2)
    all = judged
    expect(all["orders"][:slow]).to be >= 5
    # A machine that is busy makes some of the others slow, too.
    expect_judged(all.slice("orders"), tail: 0.8, others: 0.08)
    expect_causes_named
  end

  it "are in the tail but for one in twenty, and of the others one in fifty", alone: true do
    skip "takes a quiet machine for half a minute; with RPERF_LONG=1" unless Commands::LONG
    serve(orders: 3_000, cart: 1_500, about: 500, hog: 1.4)
    all = judged
    expect(all["orders"][:slow]).to be >= 29
    expect(all["cart"][:slow]).to be_positive
    # Of all 5,000: in the few of one page that has no slow ones, chance has more of a share.
    whole = all.values.reduce { |sum, of| sum.merge(of) { |_, one, other| one + other } }
    expect_judged({ "orders" => all["orders"] }, tail: 0.95, others: 0.02)
    # The first ones that wait for the job are the p99 of those known so far: a second one that waits less is below it.
    expect_judged({ "all" => whole }, tail: 0.9, others: 0.02)
    expect_causes_named
  end
end
