# frozen_string_literal: true

RSpec.describe "Rack middleware in a Rails app", skip: Servers.missing("railties", "puma") do
  include RailsApps
  include Servers

  # Measures each request by the label that it has at its end, and so counts it. Goes below our middleware.
  def initializer(add)
    <<~RUBY
      require "rperf/middleware"
      require #{app("tasks.rb").inspect}

      class Measure
        def initialize(app) = @app = app
        def call(env) = Tasks.measure(-> { Rperf.labels[:endpoint] }) { @app.call(env) }
      end

      Rails.application.config.middleware.#{add} Rperf::Middleware
      Rails.application.config.middleware.use Measure
    RUBY
  end

  let(:routes) do
    <<~RUBY
      require_relative "../shop/lib/shop"

      Rails.application.routes.draw do
        resources :users, only: :show
        get "/articles/:slug", to: "users#article"
        get "/fail/:id", to: "users#failing"
        get "/streams/:id", to: "streams#show"
        namespace :admin do
          resources :reports, only: %i[index show], param: :name
        end
        mount Shop::Engine => "/shop"
      end
    RUBY
  end

  # And an engine, which is mounted.
  let(:controllers) do
    {
      "app/controllers/users_controller.rb" => <<~RUBY,
        class UsersController < ApplicationController
          before_action { Tasks.mix }

          def show
            Tasks.compute
            article
          end

          def article = answer(Rperf.labels[:endpoint])
          def failing = Tasks.fail
        end
      RUBY
      "app/controllers/streams_controller.rb" => <<~RUBY,
        class StreamsController < ApplicationController
          include ActionController::Live

          def show
            Tasks.compute
            response.stream.write(Rperf.labels[:endpoint].to_s)
          ensure
            response.stream.close
          end
        end
      RUBY
      "app/controllers/admin/reports_controller.rb" => <<~RUBY,
        class Admin::ReportsController < ApplicationController
          before_action(only: :show) { Tasks.fetch }

          def index = answer(Rperf.labels[:endpoint])
          def show = answer(Rperf.labels[:endpoint])
        end
      RUBY
      "shop/lib/shop.rb" => <<~RUBY
        module Shop
          class Engine < Rails::Engine
            isolate_namespace Shop
            routes.draw { get "/items/:id", to: "items#show" }
          end

          class ItemsController < ApplicationController
            before_action { Tasks.compute }

            def show = answer(Rperf.labels[:endpoint])
          end
        end
      RUBY
    }
  end

  # Requests, and the labels that they should have.
  let(:pages) do
    {
      "/users/%d" => "GET /users/:id", "/articles/title-%d-x" => "GET /articles/:slug", "/fail/%d" => "GET /fail/:id",
      "/admin/reports" => "GET /admin/reports", "/admin/reports/of-%d.pdf" => "GET /admin/reports/:name",
      "/shop/items/%d" => "GET /shop/items/:id", "/none/%d" => "GET /none/:id"
    }
  end

  # So many requests of each page, by turns.
  def serve(server, count)
    server.get_all(Array.new(count) { |number| pages.keys.map { |page| format(page, number) } }.flatten)
  end

  def start_rails(add)
    write_rails_app("config/initializers/rperf.rb" => initializer(add), "config/routes.rb" => routes, **controllers)
    start_puma("-t", "4:4", env: { "PROFILE" => path_to("app.pb.gz") })
  end

  it "labels each request with the pattern of its route" do
    server = start_rails("use")
    responses = serve(server, 25)
    expect(responses.map { |response| response.code.to_i }.tally).to eq(200 => 125, 500 => 25, 404 => 25)
    labels = responses.select { |response| response.code == "200" }.map(&:body)
    expect(labels.tally).to eq(pages.values.grep_v(/fail|none/).to_h { |label| [label, 25] })
    stop_server(server)

    expect(measured_numbers).to eq(pages.values.to_h { |label| [label, 25] })
    data = read_profile(path_to("app.pb.gz"))
    expect_own_labels(data, :endpoint, { "Tasks.fetch" => "GET /admin/reports/:name", "Tasks.fail" => "GET /fail/:id",
                                         "UsersController#show" => "GET /users/:id" },
                      from: "Rperf::RackMiddleware#call")
    expect(labels_of(data, :endpoint, "Tasks.compute")).to contain_exactly("GET /users/:id", "GET /shop/items/:id")
  end

  it "labels an action that streams from a thread of its own" do
    server = start_rails("use")
    bodies = server.get_all(["/streams/7"] * 20).map(&:body)
    expect(bodies.uniq).to eq(["GET /streams/:id"])
    stop_server(server)
    data = read_profile(path_to("app.pb.gz"))
    expect(labels_of(data, :endpoint, "StreamsController#show")).to include("GET /streams/:id")
  end

  it "labels what the rest of the middleware does, if it comes before that" do
    server = start_rails("insert_before 0,")
    server.get_all(["/articles/a"] * 40)
    stop_server(server)
    expect(measured_numbers).to eq("GET /articles/:slug" => 40)
    data = read_profile(path_to("app.pb.gz"))
    expect_own_labels(data, :endpoint, { "Tasks.mix" => "GET /articles/:slug" }, from: "Rperf::RackMiddleware#call")
    expect(labels_of(data, :endpoint, "ActionDispatch::RequestId#call")).not_to include(nil)
  end
end
