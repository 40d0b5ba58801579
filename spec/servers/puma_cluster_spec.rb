# frozen_string_literal: true

RSpec.describe "Rack middleware in Puma's workers" do
  include Servers

  it "puts all workers into one profile, with each endpoint's own label and time", skip: Servers.missing("puma") do
    under = rperf_command("record", "-m", "wall", "-o", "app.pb.gz")
    server = start_puma("-w", "2", "-t", "3:3", app: app("rack.ru"), under:, config: "silence_single_worker_warning\n")
    endpoints = { "compute" => "GET /compute/:id", "fetch" => "GET /fetch/:id", "mix" => "GET /mix/:id" }
    paths = Array.new(500) { |number| "/#{endpoints.keys[number % 3]}/#{number}" }
    expect(server.get_all(paths, clients: 8).map(&:body).tally.keys).to match_array(endpoints.values)
    outcome = stop_server(server)
    expect(outcome.messages).to match([/\Arperf: wrote app\.pb\.gz/])

    data = read_profile(in_folder("app.pb.gz"))
    expect_own_labels(data, :endpoint, endpoints.transform_keys { |task| "Tasks.#{task}" })
    expect_measured_times(data, :endpoint, measured_times)
    # The main process, which serves nothing, and both workers.
    expect(time_by_label(data, :"%pid").size).to eq(3)
    endpoints.each_key { |task| expect(labels_of(data, :"%pid", "Tasks.#{task}").size).to eq(2) }
  end
end
