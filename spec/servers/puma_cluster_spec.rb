# frozen_string_literal: true

# A server of several processes: one profile, in which nothing is missing.
RSpec.describe "Rack middleware in Puma's workers", vm: true, alone: true, skip: Servers.missing("puma", "rack") do
  include Servers

  let(:endpoints) { { "compute" => "GET /compute/:id", "fetch" => "GET /fetch/:id", "mix" => "GET /mix/:id" } }
  # How many requests each process has answered, by its id.
  let(:served) { Hash.new(0) }

  def serve(server, count)
    paths = Array.new(count) { |number| "/#{endpoints.keys[number % 3]}/#{number}" }
    responses = server.get_all(paths, clients: 6)
    expect(responses.map(&:body)).to eq(paths.map { |path| "GET #{path.sub(/\d+/, ":id")}" })
    responses.each { |response| served[response["process-id"]] += 1 }
  end

  # One worker can have got all connections.
  def serve_by_both(server, count)
    serve(server, count)
    wait_until("requests to both workers") { served.size == 2 || (serve(server, 30) && served.size == 2) }
  end

  # So many have been, those that ended included.
  def wait_for_workers(server, count)
    wait_until("worker #{count}") { server.output.scan(/Worker \d+ \(PID: \d+\) booted/).size == count }
  end

  def start_workers(**options)
    start_puma("-w", "2", "-t", "3:3", **options).tap { |server| wait_for_workers(server, 2) }
  end

  # Puma starts another one in its place.
  def end_worker(server, pid)
    Process.kill(:TERM, Integer(pid))
    wait_for_workers(server, 3)
  end

  # Each request was answered once, by a worker that came to its end; and the profile says of each worker what that
  # worker measured itself.
  def expect_all_requests(data)
    by_worker = measured.reject { |_, labels| labels.empty? }
    expect(by_worker.transform_values { |labels| labels.sum { |_, (_, number)| number } }).to eq(served)
    expect_own_labels(data, :endpoint, endpoints.transform_keys { |task| "Tasks.#{task}" },
                      from: "Rperf::RackMiddleware#call")
    by_worker.each do |pid, labels|
      expect_measured_times(part_of(data, :"%pid", pid), :endpoint, labels.transform_values(&:first))
    end
  end

  it "puts all workers into one profile that agrees with their own clocks, although they are stopped by TERM" do
    server = start_workers(app: app("rack.ru"), under: rperf_command("record", "-m", "wall", "-o", "app.pb.gz"))
    serve_by_both(server, 300)
    end_worker(server, served.keys.first)
    serve(server, 300)
    expect(stop_server(server).messages).to match([/\Arperf: wrote app\.pb\.gz \([\d,]+ samples of 4 processes, /])

    data = read_profile(path_to("app.pb.gz"))
    expect_all_requests(data)
    # Puma's main process, the workers, and the one in place of another.
    expect(time_by_label(data, :"%pid").size).to eq(4)
    expect(time_by_label(data, :"%process").keys.grep(/cluster worker [01]/).size).to eq(2)
    expect(session_directories).to be_empty
  end

  it "profiles the workers of an app that starts the profiler itself and is loaded before Puma forks" do
    write_file("config.ru", <<~RUBY)
      require "rperf/middleware"

      Rperf.start(mode: :wall, inherit: :fork)

      at_exit do
        data = Rperf.stop
        Rperf.save("profile.pb.gz", data) if data
      end

      instance_eval(File.read(#{app("rack.ru").inspect}), #{app("rack.ru").inspect})
    RUBY
    server = start_workers(config: "preload_app!\n")
    serve_by_both(server, 500)
    expect(stop_server(server).messages).to eq([])

    data = read_profile(path_to("profile.pb.gz"))
    expect_all_requests(data)
    expect(time_by_label(data, :"%pid").keys).to match_array(measured.keys)
    expect(session_directories).to be_empty
  end
end
