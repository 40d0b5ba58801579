# frozen_string_literal: true

require "json"

# A server of several processes: one profile, in which nothing is missing.
RSpec.describe "a Puma cluster under the profiler", skip: Servers.missing("puma", "rack") do
  include Servers

  # Each endpoint measures itself, and leaves the time in a file of its process.
  let(:app) do
    <<~RUBY
      require "json"
      TIMES = Hash.new(0)
      def measured(name)
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        yield
      ensure
        TIMES[name] += Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
        TIMES[:requests] += 1
      end
      at_exit { File.write("times.\#{$$}.json", TIMES.to_json) }

      def napping = sleep(0.004)
      def spinning = (i = 0; i += 1 while i < 250_000)
      run(lambda do |env|
        name = env["PATH_INFO"].delete_prefix("/")
        measured(name) { name == "nap" ? napping : spinning }
        [200, { "content-type" => "text/plain" }, [$$.to_s]]
      end)
    RUBY
  end

  def serve(requests)
    write_file("config.ru", app)
    server = start_puma("-w", "2", "-t", "3:3", under: rperf_command("record", "-m", "wall", "-o", "p.pb.gz"))
    responses = []
    ask = ->(paths) { responses.concat(server.get_all(paths, clients: 6).map(&:body)) }
    wait_until("both workers") { ask[["/nap"] * 6].uniq.size == 2 }
    ask[Array.new(requests) { |number| number.odd? ? "/nap" : "/spin" }]
    [stop_server(server), responses.tally]
  end

  def times_by_process
    Dir[in_folder("times.*.json")].to_h do |path|
      [path[/\d+(?=\.json)/], JSON.parse(File.read(path))]
    end
  end

  # Of these processes, at and below a method.
  def time_of(data, pids, method)
    data[:samples].sum do |frames, weight, _, labels|
      next 0 unless pids.include?(data[:label_sets][labels][:"%pid"])

      frames.any? { |_, name| name.end_with?(method) } ? weight : 0
    end
  end

  it "is one profile that agrees with the workers' own clocks, although they are stopped by TERM" do
    outcome, requests = serve(500)
    expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz \([\d,]+ samples of 3 processes, /)
    data = read_profile(in_folder("p.pb.gz"))
    workers = times_by_process.slice(*requests.keys)
    expect(workers.transform_values { |times| times["requests"] }).to eq(requests)
    { "nap" => "napping", "spin" => "spinning" }.each do |name, method|
      time = workers.sum { |_, times| times.fetch(name, 0) }
      # On a busy machine ticks come late by milliseconds, either way.
      expect(time_of(data, workers.keys, method)).to be_within(100_000_000 + (time * 0.05)).of(time)
    end
    names = data[:label_sets].filter_map { |set| set[:"%process"] }.uniq
    expect(names.grep(/cluster worker [01]/).size).to eq(2)
    expect(session_folders).to be_empty
  end
end
