# frozen_string_literal: true

# Programs as users write them, from the documentation.
RSpec.describe "Middleware, set up as documented" do
  include Servers

  # Where no Rails is: what the lines of its initializers need, and an app for rackup from it.
  def rails_stand_in
    <<~RUBY
      module Rails
        def self.version = "none"
        def self.application = @application ||= Struct.new(:config).new(Struct.new(:middleware).new([]))
      end
      def (Rails.application.config.middleware).use(*middleware) = push(middleware)
      Dir.mkdir("tmp")
    RUBY
  end

  # Answers with its labels, and spends time with it.
  def config_ru
    <<~RUBY
      require_relative "app"
      def (page = Object.new).call(env) = sleep(0.02) && [200, {}, [Rperf.labels.inspect]]
      Rails.application.config.middleware.each { |middleware| use(*middleware) }
      run page
    RUBY
  end

  # Seconds by label, in what the server or the program wrote. At 99 samples a second each request or job can win or
  # lose some milliseconds.
  def times(path, key) = time_by_label(read_profile(in_folder(path)), key).transform_values { |ns| ns / 1e9 }

  it "labels the requests of a Rails app", skip: Servers.missing("rackup", "webrick") do
    write_file("app.rb", <<~RUBY)
      #{rails_stand_in}
      require "rperf/middleware"

      Rperf.start(mode: :wall, frequency: 99)

      Rails.application.config.middleware.use Rperf::Middleware

      at_exit do
        data = Rperf.stop
        Rperf.save("tmp/profile.pb.gz", data) if data
      end
    RUBY
    write_file("config.ru", config_ru)
    server = start_rackup("webrick")
    bodies = server.get_all([*["/api/users"] * 20, *["/"] * 10]).map(&:body)
    expect(bodies.tally).to eq('{endpoint: "GET /api/users"}' => 20, '{endpoint: "GET /"}' => 10)
    stop_server(server)
    expect(times("tmp/profile.pb.gz", :endpoint)).to include(
      "GET /api/users" => be_between(0.2, 3), "GET /" => be_between(0.1, 2)
    )
  end

  it "labels the requests of a Sinatra app", skip: Servers.missing("rackup", "webrick", "sinatra") do
    write_file("app.rb", <<~RUBY)
      require "sinatra"
      require "rperf/middleware"

      Rperf.start(mode: :wall, frequency: 99)

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
    write_file("config.ru", "require_relative 'app'\nrun Sinatra::Application\n")
    server = start_rackup("webrick")
    expect(server.get_all(["/hello"] * 20).map(&:body).uniq).to eq(["Hello, world!"])
    stop_server(server)
    expect(times("profile.pb.gz", :endpoint)).to include("GET /hello" => be_between(0.2, 3))
  end

  it "takes another label key", skip: Servers.missing("rackup", "webrick") do
    write_file("config.ru", <<~RUBY)
      require "rperf/middleware"
      Rperf.start(mode: :wall)
      use Rperf::Middleware, label_key: :route
      run ->(env) { [200, {}, [Rperf.labels.inspect]] }
    RUBY
    expect(start_rackup("webrick").get("/users/7").body).to eq('{route: "GET /users/:id"}')
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
    expect(times("profile.pb.gz", :job)).to include("SendEmailJob" => be_between(0.03, 0.5))
  end

  it "labels requests and jobs, and exports profiles now and then",
     skip: Servers.missing("rackup", "webrick", "sidekiq", "redis-server") do
    write_file("app.rb", <<~RUBY)
      require "sidekiq"
      #{rails_stand_in}
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

      class ReportJob
        include Sidekiq::Job
        def perform = sleep(0.1)
      end
    RUBY
    write_file("config.ru", config_ru.sub("sleep(0.02)", "ReportJob.perform_async"))
    redis = start_redis
    web = start_rackup("webrick", env: { "REDIS_URL" => redis_url(redis) })
    expect(web.get_all(["/reports/1"] * 12).map(&:body).uniq).to eq(['{endpoint: "GET /reports/:id"}'])
    stop_server(web)
    FileUtils.mv(in_folder("tmp"), in_folder("tmp-web"))
    sidekiq = start_sidekiq(redis, "app.rb", "-c", "2")
    wait_until("export of all jobs") { exported("tmp", :job, "ReportJob") > 0.9 }
    stop_server(sidekiq)
    expect(exported("tmp", :job, "ReportJob")).to be_between(0.9, 4)
  end

  # Seconds that the profiles in the folder give to the label.
  def exported(subfolder, key, label)
    Dir.glob("#{subfolder}/*.gz", base: folder).sum { |file| times(file, key).fetch(label, 0) }
  end
end
