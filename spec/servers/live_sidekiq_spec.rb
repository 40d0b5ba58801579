# frozen_string_literal: true

# A processor of jobs, watched and profiled from outside while it works.
RSpec.describe "Sidekiq with a port", skip: Servers.missing("sidekiq", "redis-server") do
  include Servers
  include Ports

  before do
    write_file("app.rb", <<~RUBY)
      require "sidekiq"
      require "rperf/sidekiq"

      Sidekiq.configure_server do |config|
        config.server_middleware { |chain| chain.add(Rperf::SidekiqMiddleware) }
      end

      class HardJob
        include Sidekiq::Job
        def perform = 200.times { 100.times(&:to_s) } && sleep(0.01)
      end
    RUBY
    write_file("client.rb", "require_relative 'app'\n2000.times { HardJob.perform_async }")
  end

  it "is listed, watched and profiled with its jobs, and ends as it does without" do
    redis = start_redis
    expect(run(ruby, "client.rb", env: app_environment.merge("REDIS_URL" => redis_url(redis))).stderr).to eq("")
    sidekiq = start_sidekiq(redis, "app.rb", "-c", "2", env: { "RPERF_LISTEN" => "1" })
    wait_until("title") do
      # An emulator's command line has no titles.
      listed[sidekiq.pid]&.then { |it| Commands::SLOWNESS > 1 || it["program"].to_s.start_with?("sidekiq ") }
    end
    outcome = rperf("attach", sidekiq.pid.to_s, "--duration", "1", "-o", "x.pb.gz")
    expect(outcome.stderr).to match(/\Arperf: wrote x\.pb\.gz /)
    data = read_profile(path_to("x.pb.gz"))
    expect(time_by_label(data, :job)).to include("HardJob" => be > 5e8)
    intervals = JSON.parse(rperf("top", "--json", "--once", sidekiq.pid.to_s).stdout)
    expect(intervals["labels"].map { |label| label.values_at("key", "value") }).to include(%w[job HardJob])
    stacks = JSON.parse(rperf("stacks", "--json", sidekiq.pid.to_s).stdout)
    expect([stacks["source"], stacks["threads"].map { |thread| thread["name"] }])
      .to match(["vm", include(match(/processor/))])
    outcome = stop_server(sidekiq)
    expect([outcome.status, outcome.messages]).to match([be_success, []])
  end
end
