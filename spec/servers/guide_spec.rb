# frozen_string_literal: true

# Programs as users write them, from the documentation.
RSpec.describe "Middleware, set up as documented" do
  include RailsApps
  include Servers

  # Of an emulator.
  slowness = Commands::SLOWNESS

  # Seconds by label, in the profile of the server or the program. At 99 samples a second each request or job can win or
  # lose some milliseconds.
  def times(path, key) = time_by_label(read_profile(path_to(path)), key).transform_values { |ns| ns / 1e9 }

  # Seconds that `go tool pprof -tagfocus=KEY=PATTERN` selects.
  def focused(path, key, pattern) = times(path, key).sum { |label, time| label.to_s.match?(pattern) ? time : 0 }

  # A controller with this work, and the labels as its page.
  def pages_controller(work)
    <<~RUBY
      class PagesController < ApplicationController
        def show
          #{work}
          answer(Rperf.labels.inspect)
        end
      end
    RUBY
  end

  it "labels the requests of a Rails app", skip: Servers.missing("rackup", "webrick", "railties") do
    write_rails_app(
      "config/initializers/rperf.rb" => <<~RUBY,
        require "rperf/middleware"

        Rperf.start(mode: :wall, frequency: 99)

        Rails.application.config.middleware.use Rperf::Middleware

        at_exit do
          data = Rperf.stop
          Rperf.save("tmp/profile.pb.gz", data) if data
        end
      RUBY
      "config/routes.rb" => <<~RUBY,
        Rails.application.routes.draw do
          get "/api/users", to: "pages#show"
          get "/articles/:slug", to: "pages#show"
        end
      RUBY
      "app/controllers/pages_controller.rb" => pages_controller("sleep(0.02)")
    )
    server = start_rackup("webrick")
    bodies = server.get_all([*["/api/users"] * 20, *["/articles/a", "/articles/b"] * 5]).map(&:body)
    expect(bodies.tally).to eq('{endpoint: "GET /api/users"}' => 20, '{endpoint: "GET /articles/:slug"}' => 10)
    stop_server(server)
    expect(times("tmp/profile.pb.gz", :endpoint)).to include(
      "GET /api/users" => be_between(0.2, 3 * slowness), "GET /articles/:slug" => be_between(0.1, 2 * slowness)
    )
    expect(focused("tmp/profile.pb.gz", :endpoint, %r{GET /api/users})).to be_between(0.2, 3 * slowness)
  end

  describe "in a Sinatra app", skip: Servers.missing("rackup", "webrick", "sinatra") do
    # With a condition after Rperf.start(...).
    def write_sinatra_app(condition = "")
      write_file("app.rb", <<~RUBY)
        require "sinatra"
        require "rperf/middleware"

        Rperf.start(mode: :wall, frequency: 99) #{condition}

        use Rperf::Middleware

        at_exit do
          data = Rperf.stop
          Rperf.save("profile.pb.gz", data) if data
        end

        get "/hello" do
          sleep 0.02
          "Hello, world!"
        end
      RUBY
    end

    def serve(server)
      expect(server.get_all(["/hello"] * 20).map(&:body).uniq).to eq(["Hello, world!"])
      stop_server(server)
    end

    # Without rackup: Sinatra starts the server itself.
    def start_sinatra(under: [])
      start_server("Sinatra") { |port| [*under, ruby, "app.rb", "-s", "webrick", "-o", Servers::HOST, "-p", port] }
    end

    it "labels the requests" do
      write_sinatra_app
      write_file("config.ru", "require_relative 'app'\nrun Sinatra::Application\n")
      serve(start_rackup("webrick"))
      expect(times("profile.pb.gz", :endpoint)).to include("GET /hello" => be_between(0.2, 3 * slowness))
    end

    it "has ended when the app, started by itself, begins to serve: what docs/guide/web-and-jobs.md warns of" do
      write_sinatra_app
      serve(start_sinatra)
      expect(times("profile.pb.gz", :endpoint).keys).to eq([nil])
    end

    it "labels the requests under rperf record, if it leaves the profiler alone that runs already" do
      write_sinatra_app("unless Rperf.running?")
      outcome = serve(start_sinatra(under: rperf_command("record", "-m", "wall", "-o", "app.pb.gz")))
      expect(outcome.messages).to match([/\Arperf: wrote app\.pb\.gz/])
      expect(times("app.pb.gz", :endpoint)).to include("GET /hello" => be_between(0.2, 3 * slowness))
      expect(File.exist?(path_to("profile.pb.gz"))).to be(false)
    end
  end

  it "takes another label key", skip: Servers.missing("rackup", "webrick") do
    write_file("config.ru", <<~RUBY)
      require "rperf/middleware"
      Rperf.start(mode: :wall, output: "profile.pb.gz")
      at_exit { Rperf.stop }
      use Rperf::Middleware, label_key: :route
      run ->(env) { sleep(0.02) && [200, {}, [Rperf.labels.inspect]] }
    RUBY
    server = start_rackup("webrick")
    expect(server.get_all(["/users/7"] * 10).map(&:body).uniq).to eq(['{route: "GET /users/:id"}'])
    stop_server(server)
    expect(times("profile.pb.gz", :route)).to include("GET /users/:id" => be_between(0.1, 2 * slowness))
    expect(times("profile.pb.gz", :endpoint).keys).to eq([nil])
  end

  it "labels Active Jobs by their classes", skip: Servers.missing("activejob") do
    program = write_file("app.rb", <<~RUBY)
      require "active_job"
      require "rperf/active_job"

      class ApplicationJob < ActiveJob::Base
        include Rperf::ActiveJobMiddleware
      end

      class SendEmailJob < ApplicationJob
        def perform(user)
          sleep 0.05
          puts user, Rperf.labels
        end
      end

      ActiveJob::Base.logger = nil
      Rperf.start(mode: :wall, frequency: 99, output: "profile.pb.gz") { SendEmailJob.perform_now("ann") }
    RUBY
    expect(run(ruby, program, env: app_environment).stdout).to eq("ann\n{job: \"SendEmailJob\"}\n")
    expect(times("profile.pb.gz", :job)).to include("SendEmailJob" => be_between(0.03, 0.5 * slowness))
    expect(focused("profile.pb.gz", :job, /SendEmailJob/)).to be_between(0.03, 0.5 * slowness)
  end

  it "labels Sidekiq's jobs by their classes", skip: Servers.missing("sidekiq", "redis-server") do
    write_file("app.rb", <<~RUBY)
      require "sidekiq"
      require "rperf/sidekiq"

      Sidekiq.configure_server do |config|
        config.server_middleware do |chain|
          chain.add Rperf::SidekiqMiddleware
        end
      end

      class HardJob
        include Sidekiq::Job
        def perform(seconds) = sleep(seconds)
      end
    RUBY
    redis = start_redis
    client = write_file("client.rb", "require_relative 'app'\n8.times { HardJob.perform_async(0.05) }")
    expect(run(ruby, client, env: app_environment.merge("REDIS_URL" => redis_url(redis))).stderr).to eq("")
    sidekiq = start_sidekiq(redis, "app.rb", "-c", "2", under: rperf_command("record", "-m", "wall", "-o", "app.pb.gz"))
    wait_until("end of the queue") { ask_redis(redis, "LLEN queue:default") == ":0" }
    expect(stop_server(sidekiq).messages).to match([/\Arperf: wrote app\.pb\.gz/])
    expect(times("app.pb.gz", :job)).to include("HardJob" => be_between(0.35, 3 * slowness))
  end

  it "labels requests and jobs, and exports profiles now and then",
     skip: Servers.missing("rackup", "webrick", "railties", "sidekiq", "redis-server") do
    write_rails_app(
      "config/gems.rb" => 'require "sidekiq"',
      "config/initializers/rperf.rb" => <<~RUBY,
        require "rperf/middleware"
        require "rperf/sidekiq"

        Rperf.start(mode: :wall, frequency: 99)

        # Label web requests
        Rails.application.config.middleware.use Rperf::Middleware

        # Label Sidekiq jobs
        Sidekiq.configure_server do |config|
          config.server_middleware do |chain|
            chain.add Rperf::SidekiqMiddleware
          end
        end

        # Export profiles periodically
        Thread.new do
          loop do
            sleep 0.5
            snap = Rperf.snapshot(clear: true)
            Rperf.save("tmp/profile-\#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}.pb.gz", snap) if snap
          end
        end
      RUBY
      "config/routes.rb" => 'Rails.application.routes.draw { get "/reports/:id", to: "pages#show" }',
      "app/controllers/pages_controller.rb" => pages_controller("ReportJob.perform_async && sleep(0.02)"),
      "app/jobs/report_job.rb" => <<~RUBY
        class ReportJob
          include Sidekiq::Job
          def perform = sleep(0.1)
        end
      RUBY
    )
    redis = start_redis
    web = start_rackup("webrick", env: { "REDIS_URL" => redis_url(redis) })
    expect(web.get_all(["/reports/1"] * 12).map(&:body).uniq).to eq(['{endpoint: "GET /reports/:id"}'])
    wait_until("export of all requests") { exported(:endpoint, "GET /reports/:id") > 0.15 }
    sidekiq = start_sidekiq(redis, "config/environment.rb", "-c", "2")
    wait_until("export of all jobs") { exported(:job, "ReportJob") > 0.9 }
    [web, sidekiq].each { |server| stop_server(server) }
    # All files together, as pprof adds them up.
    expect(exported(:endpoint, "GET /reports/:id")).to be_between(0.15, 3 * slowness)
    expect(exported(:job, "ReportJob")).to be_between(0.9, 4 * slowness)
  end

  # Seconds that the profiles give to the label.
  def exported(key, label)
    Dir.glob("tmp/*.gz", base: directory).sum { |file| times(file, key).fetch(label, 0) }
  end
end
