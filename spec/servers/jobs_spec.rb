# frozen_string_literal: true

RSpec.describe "Middleware of job processors" do
  include Servers

  # Runs the program, which has the jobs, to its end.
  def run_jobs(program)
    program = write_file("program.rb", "require #{app("jobs.rb").inspect}\n#{program}")
    outcome = run(ruby, program, env: app_environment.merge("PROFILE" => path_to("app.pb.gz")))
    expect(outcome.stderr).to eq("")
    expect(outcome.status).to be_success
    outcome.stdout
  end

  def expect_profile(own, from:)
    data = read_profile(path_to("app.pb.gz"))
    expect_own_labels(data, :job, own, from:)
    expect(measured_times.keys).to match_array(own.values)
    expect_times_of_some_length(data, :job, measured_times)
  end

  describe "Active Job", skip: Servers.missing("activejob") do
    let(:own) { { "Tasks.compute" => "ComputeJob", "Tasks.fetch" => "Remote::FetchJob", "Tasks.fail" => "FailingJob" } }

    it "labels jobs that run in the threads of the async adapter" do
      run_jobs(<<~RUBY)
        adapter = ActiveJob::QueueAdapters::AsyncAdapter.new(min_threads: 4, max_threads: 4)
        ActiveJob::Base.queue_adapter = adapter
        30.times do |number|
          ComputeJob.perform_later
          Remote::FetchJob.perform_later(number, times: 2)
          FailingJob.perform_later
        end
        adapter.shutdown
      RUBY
      expect_profile(own, from: "Rperf::ActiveJobMiddleware")
    end

    it "labels jobs that run inline, and nothing after them" do
      labels = run_jobs(<<~RUBY)
        ActiveJob::Base.queue_adapter = :inline
        15.times do |number|
          ComputeJob.perform_later
          Rperf.label(request: number) do
            Remote::FetchJob.perform_later(number, times: 3)
            FailingJob.perform_now
            abort "a label was left" unless Rperf.labels == { request: number }
          end
        end
        p Rperf.labels
      RUBY
      expect(labels).to eq("{}\n")
      expect_profile(own, from: "Rperf::ActiveJobMiddleware")
    end

    it "profiles jobs only in a deferred session, and runs them when there is none" do
      program = write_file("program.rb", <<~RUBY)
        require #{app("jobs.rb").inspect}
        Remote::FetchJob.perform_now(1)
        Rperf.start(mode: :wall, defer: true)
        2.times { Tasks.compute; Remote::FetchJob.perform_now(1, times: 5) }
        data = Rperf.stop
        puts data[:label_sets].map { |set| set.except(:"%gc") }.uniq.last
        puts data[:samples].sum { |sample| sample[1] } / 1_000_000
        puts data[:samples].count { |frames,| frames.any? { |_, name| name == "Tasks.compute" } }
      RUBY
      label, time, outside = run(ruby, program, env: app_environment).stdout.lines(chomp: true)
      expect([label, outside]).to eq(['{job: "Remote::FetchJob"}', "0"])
      expect(time.to_i).to be_between(79, 500)
    end
  end

  describe "Sidekiq", skip: Servers.missing("sidekiq", "activejob", "redis-server") do
    let(:own) { { "Tasks.compute" => "ComputeJob", "Tasks.fetch" => "Mail::FetchJob", "Tasks.fail" => "FailingJob" } }

    def start_profiled_sidekiq(redis, **env)
      write_file("jobs.rb", "require #{app("sidekiq.rb").inspect}")
      write_file("client.rb", <<~RUBY)
        require #{app("sidekiq.rb").inspect}
        Integer(ARGV.first).times do |number|
          ComputeJob.perform_async(number)
          Mail::FetchJob.perform_later(number, times: 2)
          FailingJob.perform_async
        end
      RUBY
      start_sidekiq(redis, "jobs.rb", "-c", "4", env: { "PROFILE" => path_to("app.pb.gz") }.merge(env))
    end

    # So many jobs of each kind, done to the last one that waits.
    def do_jobs(redis, count)
      outcome = run(ruby, "client.rb", count.to_s, env: app_environment.merge("REDIS_URL" => redis_url(redis)))
      expect(outcome.stderr).to eq("")
      # The client's own.
      Dir.each_child(directory) { |file| File.delete(path_to(file)) if file.start_with?("measured-") }
      wait_until("end of the queue") { ask_redis(redis, "LLEN queue:default") == ":0" }
    end

    def expect_profiled(sidekiq, count)
      expect(stop_server(sidekiq).status).to be_success
      expect(measured_numbers.values).to eq([count] * 3)
      expect_profile(own, from: "Rperf::SidekiqMiddleware#call")
    end

    it "labels its own jobs and Active Jobs" do
      redis = start_redis
      sidekiq = start_profiled_sidekiq(redis)
      do_jobs(redis, 30)
      expect_profiled(sidekiq, 30)
    end

    it "gives an Active Job that has its own middleware too the same label" do
      redis = start_redis
      sidekiq = start_profiled_sidekiq(redis, "BOTH_MIDDLEWARES" => "1")
      do_jobs(redis, 20)
      expect_profiled(sidekiq, 20)
      data = read_profile(path_to("app.pb.gz"))
      expect(own_label_sets(data)).to match_array([{}, *own.values.map { |job| { job: } }])
      expect(labels_of(data, :job, "Rperf::ActiveJobMiddleware")).to include("Mail::FetchJob")
    end

    it "profiles jobs only, in a deferred session" do
      redis = start_redis
      sidekiq = start_profiled_sidekiq(redis, "DEFER" => "1")
      do_jobs(redis, 10)
      sleep 2
      do_jobs(redis, 10)
      expect_profiled(sidekiq, 20)
      expect_sections_only(read_profile(path_to("app.pb.gz")), measured_times)
    end
  end
end
