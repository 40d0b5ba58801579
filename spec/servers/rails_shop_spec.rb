# frozen_string_literal: true

# spec/support/apps/rails_shop: a Rails app under Puma with the four causes of examples/slow_requests and its customers.
RSpec.describe "Slow requests of a Rails app", skip: Servers.missing("railties", "activejob", "activerecord", "puma") do
  include Servers

  shop = File.join(Commands::ROOT, "spec/support/apps/rails_shop/config.ru")
  load = File.join(Commands::ROOT, "examples/slow_requests/load.rb")

  # How many requests there were in so many seconds.
  define_method(:record_customers) do |seconds|
    record = rperf_command("record", "-f", "100", "-m", "wall", "--measure", "requests,blame,ops",
                           "-o", path_to("shop.data"), "--")
    server = start_puma("-t", "10:10", app: shop, under: record, env: { "ASKED" => path_to("asked") })
    customers = run(ruby, load, seconds.to_s, server.url, limit: Commands::TIME_LIMIT + (2 * seconds))
    expect([customers.status, customers.stderr]).to match([be_success, ""])
    expect(stop_server(server, signal: :INT).status).to be_success, server.output
    customers.stdout.to_i
  end

  def told = JSON.parse(rperf("why", "--json", path_to("shop.data")).stdout)

  # The statement that an order's page asks for each line, with its place.
  def expect_repeats(answer)
    repeats = answer.fetch("repeats").to_h { |it| [it["endpoint"], it] }
    expect(repeats.keys).to include("GET /orders/:id")
    order = repeats.fetch("GET /orders/:id")
    expect(order["name"]).to eq('[SQL] SELECT "products".* FROM "products" WHERE "products"."id" = ? LIMIT ?')
    expect(order["app"]).to include("name" => match(/OrdersController#text/), "path" => end_with("rails_shop/shop.rb"))
  end

  it "has each statement of Active Record, without its values, and what it repeats" do
    count = record_customers(4)
    answer = told
    expect_repeats(answer)
    requests = answer.fetch("endpoints").select { |it| it.fetch("key") == "endpoint" }
    expect(requests.sum { |it| it.fetch("requests") }).to eq(count)
    ops = Rperf.load(path_to("shop.data")).ops.fetch(:ops)
    expect(ops.map { |it| it[:name] }).to all(start_with("[SQL] SELECT ").and(match(/\A\D+\z/)))
    expect(ops.sum { |it| it[:calls] }).to eq(Integer(File.read(path_to("asked"))))
  end

  it "has files and gems of its start, as their own clocks tell" do
    # A line for each, as one that requires several files stands for all of them.
    clocked = %w[active_support/all rails active_record active_job].map do |file|
      "began = clock\nrequire #{file.inspect}\ntimes[#{file.inspect}] = clock - began\n"
    end
    write_file("start.rb", <<~RUBY)
      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      times = {}
      #{clocked.join}
      $stdout.write(times.to_json)
      require #{File.join(File.dirname(shop), "shop.rb").inspect}
    RUBY
    outcome = rperf("record", "-m", "wall", "-f", "5000", "-o", "p.data", "--", ruby, "start.rb", env: app_environment)
    expect([outcome.status, outcome.stderr]).to match([be_success, /\Arperf: wrote .*\n\z/])
    boot = Rperf.load(path_to("p.data")).boot
    files = boot[:files].select { |it| it[:kind] == "file" }
    total = files.to_h { |it| [it[:path][%r{.*/lib/(.*)\.rb}, 1], it[:total]] }
    JSON.parse(outcome.stdout).each do |file, time|
      # A slice of time that a busy machine gave to others may go to the next file, and a file of some ms have none.
      expect([file, total.fetch(file, 0)])
        .to match([file, be_between((time / 2) - 20_000_000, (1.08 * time) + 40_000_000)])
    end
    gems = %w[activerecord activesupport actionpack railties].map { |name| match(/\A#{name}-7/) }
    expect(boot[:gems].map { |it| it[:name] }).to include(*gems)
    expect(boot[:initializers].map { |it| it[:path] }).to include(match(%r{activesupport-7\.\d.*/railtie\.rb\z}))
  end

  it "names each cause, its method and line, first", alone: true do
    skip "takes a quiet machine for a minute; with RPERF_LONG=1" unless Commands::LONG
    record_customers(60)
    answer = told
    expect_repeats(answer)
    causes = answer.fetch("causes").to_h { |it| [it.values_at("name", "state"), it] }
    place = ->(name, state) { causes.fetch([name, state]).fetch("site").fetch("app").fetch("name") }
    expect(place["GET /search", "blocked_ns"]).to match(/SearchController#by_description/)
    expect(place["GET /reports/:id", "gc_ns"]).to match(/ReportsController#(rows|show)/)
    holders = causes.fetch(["GET /", "gvl_wait_ns"]).fetch("holders").map { |it| it.fetch("app").fetch("name") }
    expect(holders).to include(match(/ExportJob#rows/))
    first = rperf("why", path_to("shop.data")).stdout.lines.first(20).join
    expect(first).to include("SearchController#by_description", "ReportsController#", "OrdersController#text",
                             "ExportJob#rows")
  end
end
