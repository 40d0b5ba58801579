# frozen_string_literal: true

RSpec.describe "Rack middleware in servers" do
  include Servers

  # Three tasks by turns, each with an id of its own.
  def requests(count) = Array.new(count) { |number| "/#{%w[compute fetch mix][number % 3]}/#{number}" }

  def endpoints
    { "Tasks.compute" => "GET /compute/:id", "Tasks.fetch" => "GET /fetch/:id", "Tasks.mix" => "GET /mix/:id" }
  end

  # The server has answered these requests as it should, and then ended.
  def expect_served(server, paths)
    responses = server.get_all(paths)
    expect(responses.map(&:body)).to eq(paths.map { |path| "GET #{path.sub(/\d+/, ":id")}" })
    stop_server(server)
  end

  def expect_profile(path)
    data = read_profile(path)
    expect_own_labels(data, :endpoint, endpoints, from: "Rperf::RackMiddleware#call")
    expect(measured_times.keys).to match_array(endpoints.values)
    expect_times_of_some_length(data, :endpoint, measured_times)
  end

  it "labels what rackup and WEBrick serve", skip: Servers.missing("rackup", "webrick") do
    server = start_rackup("webrick", app: app("rack.ru"), env: { "PROFILE" => path_to("app.pb.gz") })
    expect_served(server, requests(120))
    expect_profile(path_to("app.pb.gz"))
  end

  it "labels what Puma's threads serve, under rperf record", skip: Servers.missing("puma") do
    under = rperf_command("record", "-m", "wall", "-o", "app.pb.gz")
    server = start_puma("-t", "4:4", app: app("rack.ru"), under:)
    expect(expect_served(server, requests(180)).messages).to match([/\Arperf: wrote app\.pb\.gz/])
    expect_profile(path_to("app.pb.gz"))
  end

  it "profiles requests only, in a deferred session", skip: Servers.missing("puma") do
    environment = { "PROFILE" => path_to("app.pb.gz"), "DEFER" => "1" }
    server = start_puma("-t", "4:4", app: app("rack.ru"), env: environment)
    server.get_all(requests(45))
    sleep 2
    expect_served(server, requests(45))
    expect_profile(path_to("app.pb.gz"))
    expect_sections_only(read_profile(path_to("app.pb.gz")), measured_times)
  end

  it "labels the pages of the example", skip: Servers.missing("rackup", "webrick") do
    example = File.join(Commands::ROOT, "examples", "config.ru")
    server = start_rackup("webrick", app: example, under: rperf_command("record", "-m", "wall", "-o", "web.pb.gz"))
    codes = server.get_all(%w[/orders/17 /search /nothing] * 10).map(&:code)
    expect(codes.tally).to eq("200" => 20, "404" => 10)
    expect(stop_server(server).messages).to match([/\Arperf: wrote web\.pb\.gz/])
    expect_own_labels(read_profile(path_to("web.pb.gz")), :endpoint,
                      { "price" => "GET /orders/:id", "#sleep" => "GET /search" }, from: "Rperf::RackMiddleware#call")
  end

  it "labels routes of Sinatra by their patterns", skip: Servers.missing("puma", "sinatra") do
    server = start_puma("-t", "4:4", app: app("sinatra.ru"), env: { "PROFILE" => path_to("app.pb.gz") })
    paths = Array.new(160) { |number| sinatra_path(%w[apple pear][number % 2], number / 2) }
    answers = server.get_all(paths).map { |response| [response.code, response.body] }
    expect(answers.uniq).to contain_exactly(
      ["200", "GET /compute/:word"], ["200", "GET /mounted/compute/:word"], ["200", "GET /fetch/*.*"],
      ["500", "GET /fail/:second"], ["404", "GET /none/:id"]
    )
    stop_server(server)

    data = read_profile(path_to("app.pb.gz"))
    compute = ["GET /compute/:word", "GET /mounted/compute/:word"]
    expect(labels_of(data, :endpoint, "Tasks.compute")).to match_array(compute)
    expect_own_labels(data, :endpoint, { "Tasks.fetch" => "GET /fetch/*.*", "Tasks.fail" => "GET /fail/:second" },
                      from: "Rperf::RackMiddleware#call")
    expect_times_of_some_length(data, :endpoint, measured_times.except("GET /none/:id"))
  end

  def sinatra_path(word, number)
    ["/compute/#{word}", "/mounted/compute/#{word}", "/fetch/#{word}.txt", "/fail/#{word}",
     "/none/#{number}"][number % 5]
  end
end
