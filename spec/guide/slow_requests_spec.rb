# frozen_string_literal: true

# examples/slow_requests: a shop with four planted causes, and what the first screen of `rperf why` tells of them.
RSpec.describe "The example of slow requests" do
  include Commands

  example = File.join(Commands::ROOT, "examples/slow_requests")

  # What `rperf why` tells of so many seconds with customers, as JSON and as text.
  define_method(:told_of) do |seconds|
    outcome = rperf("record", "-f", "100", "-m", "wall", "--measure", "requests,blame,ops", "-o", path_to("shop.data"),
                    ruby, File.join(example, "load.rb"), seconds.to_s, limit: seconds + Commands::TIME_LIMIT)
    expect(outcome.status).to be_success, outcome.stderr
    [JSON.parse(rperf("why", "--json", path_to("shop.data")).stdout), rperf("why", path_to("shop.data")).stdout]
  end

  # The statement that an order's page asks for each line, with its place, which no busy machine changes.
  def expect_repeats(answer, text)
    repeats = answer.fetch("repeats").to_h { |it| [it["endpoint"], it] }
    expect(repeats).to include("GET /orders/:id")
    order = repeats.fetch("GET /orders/:id")
    expect(order).to include("name" => "[SQL] SELECT * FROM products WHERE id = ?")
    app = order.fetch("app")
    expect(app).to include("name" => match(/Shop::Orders#text/), "path" => end_with("shop/orders.rb"))
    expect(text.lines.first(20).join).to match(/N\+1.*\n +\[SQL\] SELECT \* FROM products WHERE id = \?/)
  end

  it "has a query that is sent for each line of an order" do
    expect_repeats(*told_of(4))
  end

  it "has a cause for each page, told with its method and line", alone: true do
    skip "takes a quiet machine for a minute; with RPERF_LONG=1" unless Commands::LONG
    answer, text = told_of(60)
    expect_repeats(answer, text)
    causes = answer.fetch("causes").to_h { |it| [it.values_at("name", "state"), it] }
    app = ->(name, state) { causes.fetch([name, state]).fetch("site").fetch("app").fetch("name") }
    expect(app["GET /search", "blocked_ns"]).to match(/Shop::Search#by_description/)
    expect(app["GET /orders/:id", "blocked_ns"]).to match(/Shop::Orders#text/)
    expect(app["GET /reports/:id", "gc_ns"]).to match(/Shop::Reports#(rows|page)/)
    holders = causes.fetch(["GET /", "gvl_wait_ns"]).fetch("holders").map { |it| it.fetch("app").fetch("name") }
    # Others are waited for longer in all, but not by this page's slow requests.
    expect(holders.first).to match(/Shop::ExportJob#rows/)
    expect(text.lines.first(20).join).to include("Shop::Search#by_description", "Shop::Orders#text",
                                                 "Shop::ExportJob#rows")
  end
end
