# frozen_string_literal: true

RSpec.describe "Rack middleware in Puma's workers" do
  include Servers

  let(:endpoints) { { "compute" => "GET /compute/:id", "fetch" => "GET /fetch/:id", "mix" => "GET /mix/:id" } }

  # The processes that have served so many requests.
  def serve(server, count)
    paths = Array.new(count) { |number| "/#{endpoints.keys[number % 3]}/#{number}" }
    responses = server.get_all(paths, clients: 8)
    expect(responses.map(&:body)).to eq(paths.map { |path| "GET #{path.sub(/\d+/, ":id")}" })
    responses.map { |response| response["process-id"].to_i }.uniq
  end

  # So many have been, those that ended included.
  def wait_for_workers(server, count)
    wait_until("worker #{count}") { server.output.scan(/Worker \d+ \(PID: \d+\) booted/).size == count }
  end

  def start_workers
    under = rperf_command("record", "-m", "wall", "-o", "app.pb.gz")
    start_puma("-w", "2", "-t", "3:3", app: app("rack.ru"), under:).tap { |server| wait_for_workers(server, 2) }
  end

  # Puma starts another one in its place.
  def end_worker(server, pid)
    Process.kill(:TERM, pid)
    wait_for_workers(server, 3)
  end

  it "puts all workers into one profile, with each endpoint's own label and time", skip: Servers.missing("puma") do
    server = start_workers
    workers = serve(server, 200)
    # One worker can have got all connections.
    wait_until("requests to both workers") { (workers |= serve(server, 50)).size == 2 }
    end_worker(server, workers.first)
    workers |= serve(server, 250)
    expect(stop_server(server).messages).to match([/\Arperf: wrote app\.pb\.gz/])

    data = read_profile(in_folder("app.pb.gz"))
    expect_own_labels(data, :endpoint, endpoints.transform_keys { |task| "Tasks.#{task}" })
    expect_measured_times(data, :endpoint, measured_times, slack: 0.02)
    served_by = endpoints.keys.flat_map { |task| labels_of(data, :"%pid", "Tasks.#{task}") }.uniq
    expect(served_by.map(&:to_i)).to match_array(workers)
    # There is the main process, too, which serves nothing.
    expect(time_by_label(data, :"%pid").size).to be > workers.size
  end
end
