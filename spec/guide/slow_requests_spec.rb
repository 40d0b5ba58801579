# frozen_string_literal: true

# examples/slow_requests: a shop with four planted causes, and what the first screen of `rperf why` tells of them.
RSpec.describe "The example of slow requests", alone: true do
  example = File.join(Commands::ROOT, "examples/slow_requests")
  seconds = 30

  let(:causes) do
    outcome = rperf("record", "-f", "100", "-m", "wall", "--measure", "requests,blame", "-o", path_to("shop.pb.gz"),
                    ruby, File.join(example, "load.rb"), seconds.to_s)
    raise outcome.stderr unless outcome.status.success?

    JSON.parse(rperf("why", "--json", path_to("shop.pb.gz")).stdout).fetch("causes")
  end

  # The lines that a page's slow requests lead to, by state.
  def places(page)
    of_page = causes.select { |it| it["name"] == page }
    of_page.to_h { |it| [it["state"], (it["holder"] || it["site"])&.fetch("app")&.fetch("name")] }
  end

  it "has a cause for each page, told with its method and line" do
    expect(places("GET /search")).to include("blocked_ns" => "Shop::Search#by_description")
    expect(places("GET /orders/:id")).to include("blocked_ns" => "Shop::Orders#text")
    expect(places("GET /reports/:id")).to include("gc_ns" => match(/\AShop::Reports#(rows|page)\z/))
    expect(places("GET /")).to include("gvl_wait_ns" => "Shop::ExportJob#rows")
    first_lines = rperf("why", path_to("shop.pb.gz")).stdout.lines.first(16).join
    expect(first_lines).to include("Shop::Search#by_description", "Shop::Orders#text", "Shop::ExportJob#rows")
  end
end
