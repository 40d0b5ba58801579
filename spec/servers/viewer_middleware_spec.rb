# frozen_string_literal: true

require "json"
require "net/http"

RSpec.describe "Rperf::Viewer in servers" do
  include RailsApps
  include Servers

  let(:tasks) { Array.new(60) { |number| "/#{%w[compute fetch mix][number % 3]}/#{number}" } }

  # The response to one request at the viewer, with the key that the apps want and what the page says of itself.
  def ask(server, method, path, headers = { "X-Key" => "secret", "X-Rperf" => "1" })
    Net::HTTP.start(Servers::HOST, server.port, open_timeout: nil) do |http|
      http.send_request(method, "/rperf#{path}", nil, headers)
    end
  end

  def list(server) = JSON.parse(ask(server, "GET", "/snapshots.json").body, symbolize_names: true)

  def take(server)
    response = ask(server, "POST", "/snapshots")
    expect([response.code, response.body]).to match(["201", /\A{"id":"\d+-\d+"}\z/])
    JSON.parse(response.body)["id"]
  end

  # The profile of a snapshot.
  def saved(server, id)
    response = ask(server, "GET", "/snapshots/#{id}.pb.gz")
    expect(response.code).to eq("200")
    File.binwrite(path_to("#{id}.pb.gz"), response.body)
    read_profile(path_to("#{id}.pb.gz"))
  end

  # So many threads ask for pages of the app, and others take snapshots and look at them.
  def use_all_at_once(server)
    takers = Array.new(3) do
      Thread.new do
        Array.new(4) { take(server).tap { |id| ask(server, "GET", "/snapshots/#{id}.rpv") } }
      end
    end
    bodies = server.get_all(tasks).map(&:body)
    expect(bodies).to eq(tasks.map { |path| "GET #{path.sub(/\d+/, ":id")}" })
    takers.flat_map(&:value)
  end

  def labels_in(*profiles)
    profiles.flat_map { |data| data.fetch(:label_sets, []).map { |set| set[:endpoint] } }.compact.uniq
  end

  it "takes snapshots from Puma's threads, each of which has what the others lack",
     alone: true, skip: Servers.missing("puma") do
    server = start_puma("-t", "8:8", app: app("viewer.ru"), env: { "PROFILE" => path_to("app.pb.gz") })
    ids = use_all_at_once(server) << take(server)
    expect(list(server)[:snapshots].map { |snapshot| snapshot[:id] }).to match_array(ids)
    expect(ask(server, "GET", "/diff/#{ids[0]}/#{ids[-1]}.rpv").code).to eq("200")
    profiles = ids.map { |id| saved(server, id) }
    stop_server(server)

    profiles << read_profile(path_to("app.pb.gz"))
    measured = measured_times.sum { |_label, seconds| seconds } * 1e9
    seen = profiles.sum { |data| weight_of(data, "Rperf::RackMiddleware#call") }
    expect(seen).to be_within([measured * 0.05, 20_000_000].max).of(measured)
    expect(labels_in(*profiles)).to contain_exactly("GET /compute/:id", "GET /fetch/:id", "GET /mix/:id")
  end

  it "works under rperf record, whose profile loses nothing by it", alone: true, skip: Servers.missing("puma") do
    under = rperf_command("record", "-m", "wall", "-o", "app.pb.gz")
    server = start_puma("-t", "8:8", app: app("viewer.ru"), under:)
    ids = use_all_at_once(server)
    expect(list(server)).to include(can_take: true, notes: [include("profiles this program as a whole")])
    last = saved(server, ids.max_by { |id| id[/\d+\z/].to_i })
    expect(stop_server(server).messages).to match([/\Arperf: wrote app\.pb\.gz/])

    data = read_profile(path_to("app.pb.gz"))
    measured = measured_times.sum { |_label, seconds| seconds } * 1e9
    expect(weight_of(data, "Rperf::RackMiddleware#call")).to be_within([measured * 0.05, 20_000_000].max).of(measured)
    expect(labels_in(data, last)).to contain_exactly("GET /compute/:id", "GET /fetch/:id", "GET /mix/:id")
  end

  %w[webrick puma].each do |name|
    it "serves the page, and what belongs to it, with rackup and #{name}", skip: Servers.missing("rackup", name) do
      server = start_rackup(name, app: app("viewer.ru"), env: { "PROFILE" => path_to("app.pb.gz") })
      page = ask(server, "GET", "/?a=b")
      expect([page.code, page["content-type"]]).to eq(["200", "text/html; charset=utf-8"])
      expect(page.body).to include("server:/rperf/")
      expect(ask(server, "HEAD", "")).to have_attributes(code: "200", body: nil)
      id = take(server)
      expect(ask(server, "HEAD", "/snapshots/#{id}.rpv")["content-length"])
        .to eq(ask(server, "GET", "/snapshots/#{id}.rpv").body.bytesize.to_s)
      expect(ask(server, "DELETE", "/snapshots/#{id}")).to have_attributes(code: "204", body: nil)
      expect(ask(server, "DELETE", "/").then { |response| [response.code, response["allow"]] })
        .to eq(["405", "GET, HEAD"])
      expect(ask(server, "GET", "/nothing").code).to eq("404")
      expect(ask(server, "GET", "/", {})).to have_attributes(code: "403", body: /\AYou may not see this/)
      expect(ask(server, "POST", "/snapshots", { "X-Key" => "secret" }).code).to eq("403")
      expect(server.get("/compute/1").body).to eq("GET /compute/:id")
      stop_server(server)
    end
  end

  describe "in a Rails app", skip: Servers.missing("railties", "puma") do
    files = {
      "app/controllers/pages_controller.rb" => <<~RUBY
        class PagesController < ApplicationController
          def show
            sleep 0.02
            answer(Rperf.labels[:endpoint])
          end
        end
      RUBY
    }

    # With the viewer among the routes, or not.
    def start_rails(files, initializer:, mounted: "")
      write_rails_app(
        "config/initializers/rperf.rb" => "require 'rperf/viewer'\nrequire 'rperf/rack'\nRperf.start(mode: :wall)\n" \
                                          "Rails.application.config.middleware.use Rperf::RackMiddleware\n" +
                                          initializer,
        "config/routes.rb" => "Rails.application.routes.draw do\n#{mounted}\nget '/pages/:id', to: 'pages#show'\nend\n",
        **files
      )
      start_puma("-t", "4:4")
    end

    # The viewer shows what the app has done.
    # @return [Hash] the profile
    def expect_snapshot(server)
      expect(ask(server, "GET", "").body[/server:[^<]*/]).to eq("server:/rperf/")
      expect(ask(server, "GET", "/").code).to eq("200")
      expect(server.get_all(["/pages/7"] * 8).map(&:body).uniq).to eq(["GET /pages/:id"])
      2.times { list(server) }
      data = saved(server, take(server))
      expect(weight_of(data, "PagesController#show")).to be > 8 * 19_000_000
      data
    end

    it "is mounted among the routes" do
      server = start_rails(files, initializer: "",
                                  mounted: "mount Rperf::Viewer.new(auth: ->(e) { e['HTTP_X_KEY'] }), at: '/rperf'")
      expect_snapshot(server)
      expect(ask(server, "GET", "/", {}).code).to eq("403")
      stop_server(server)
    end

    it "stands among the middleware, above what labels requests" do
      initializer = "Rails.application.config.middleware.insert_before 0, Rperf::Viewer, " \
                    "auth: ->(e) { e['HTTP_X_KEY'] }\n"
      server = start_rails(files, initializer:)
      expect(labels_in(expect_snapshot(server))).to eq(["GET /pages/:id"])
      stop_server(server)
    end

    it "is closed in production without auth:, and the app runs" do
      server = start_rails(files, initializer: "Rails.application.config.middleware.use Rperf::Viewer\n")
      expect(ask(server, "GET", "/")).to have_attributes(code: "403", body: /needs auth:/)
      expect(server.get("/pages/1").body).to eq("GET /pages/:id")
      expect(stop_server(server).messages).to match([%r{\Arperf: the viewer at /rperf/ is closed: outside of dev}])
    end
  end
end
