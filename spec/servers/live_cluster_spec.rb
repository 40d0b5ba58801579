# frozen_string_literal: true

require "io/console"
require "pty"

# A server of several processes, watched and profiled from outside while it answers requests.
RSpec.describe "A Puma cluster with ports", alone: true, skip: Servers.missing("puma", "rack") do
  include Servers
  include Ports

  let(:endpoints) { ["GET /compute/:id", "GET /fetch/:id", "GET /mix/:id"] }

  # Of this server only: root sees all programs of the machine.
  def matching(server) = ["--match", "cluster worker \\d+: #{server.pid} "]

  # How many threads each worker has, as it says itself.
  def thread_counts(server)
    found = {}
    wait_until("answers of all workers") do
      server.get_all(["/threads"] * 8).each { |answer| found[answer["process-id"].to_i] = Integer(answer.body) }
      (workers(server) - found.keys).empty?
    end
    found
  end

  # Runs the block while clients ask.
  def under_load(server)
    ends = false
    clients = Array.new(4) { |number| Thread.new { server.get(%w[/compute/1 /fetch/1 /mix/1][number % 3]) until ends } }
    yield
  ensure
    ends = true
    clients.each(&:join)
  end

  # Types these keys on the screens, and draws them until they have all of the texts.
  def expect_screen(server, keys, texts)
    env = clean_environment.merge("TERM" => "xterm", "LANG" => "C.UTF-8")
    PTY.spawn(env, *rperf_command("top", *matching(server))) do |output, input, pid|
      input.winsize = [40, 100]
      seen = +""
      reader = Thread.new { loop { seen << output.readpartial(4096) } }
      reader.report_on_exception = false
      wait_until("screens") { seen.include?("quit") }
      input.write(keys)
      wait_until("screen with #{texts}") do
        input.write("\f") && sleep(0.1)
        # Gaps are jumps of the cursor.
        drawn = seen.gsub(/\e\[[\d;]*H/, " ").squeeze(" ")
        texts.all? { |text| drawn.include?(text) }
      end
    ensure
      Process.kill(:TERM, pid)
      Process.wait(pid)
      reader&.kill
    end
  end

  def tables = File.read(path_to("seen")).lines.grep(/\n\z/).map { |line| JSON.parse(line) }

  def shown = tables.last(4).filter_map { |table| table["pid"] if table["running_ns"].positive? }.uniq

  # All workers, and no other ones.
  def all_shown?(server) = shown.sort == workers(server).sort && workers(server).size == 2

  # Follows the server by `rperf top` meanwhile, and returns what that has said.
  def watching(server)
    pid = Process.spawn(clean_environment, *rperf_command("top", "--json", "--interval", "0.2", *matching(server)),
                        out: path_to("seen"), err: path_to("said"))
    wait_until("tables of both") { all_shown?(server) }
    yield
    File.read(path_to("said"))
  ensure
    Process.kill(:INT, pid)
    Process.wait(pid)
  end

  # The profile's seconds of each worker's threads.
  def times_of_threads(data)
    times = Hash.new { |found, pid| found[pid] = Hash.new(0) }
    # Blame for the GVL has rows without time.
    data[:samples].select { |sample| sample[1].positive? }.each do |sample|
      times[label_of(data, :"%pid", sample).to_i][sample[2]] += sample[1] / 1e9
    end
    times.transform_values(&:values)
  end

  # All threads of all workers are in it, each with the time that its worker was profiled.
  def expect_all_threads(server)
    counts = thread_counts(server)
    elapsed = now
    outcome = rperf("attach", *matching(server), "--duration", "2", "-o", "x.pb.gz")
    elapsed = now - elapsed
    expect(outcome.stderr).to match(/\Arperf: wrote x\.pb\.gz .* of 2 processes/)
    data = read_profile(path_to("x.pb.gz"))
    times = times_of_threads(data)
    expect(times.transform_values(&:size)).to eq(counts)
    times.each_value { |seconds| expect_same_time(seconds, 1.99..elapsed) }
    # From the start of the first process to the end of the last one: on a busy machine they are asked one after the
    # other.
    expect(times.values.flatten.max).to be_between(1.99, (data[:duration_ns] / 1e9) + 0.001)
    expect(time_by_label(data, :endpoint)).to include(*endpoints)
  end

  def expect_same_time(seconds, range)
    longest = seconds.max
    expect(seconds).to all(be_within(longest / 10).of(longest))
    expect(range).to cover(longest)
  end

  it "is profiled as a whole, and watched with all workers that come and go", emulated: false do
    server = start_puma("-w", "2", "-t", "3:3", app: app("watched.ru"), env: { "RPERF_LISTEN" => "1" })
    wait_until("ports") { sockets.count { |socket| answers?(socket) } == 2 }
    under_load(server) do
      expect_all_threads(server)
      expect_screen(server, "4", endpoints)
      first = workers(server)
      second = nil
      said = watching(server) do
        Process.kill(:TERM, first.first)
        wait_until("next worker") { (workers(server) - first).size == 1 && all_shown?(server) }
        second = workers(server)
        Process.kill(:USR1, server.pid)
        wait_until("workers of a phased restart") { (workers(server) & second).empty? && all_shown?(server) }
      end
      come = said.scan(/^rperf: (\d+) puma: cluster worker [01]: #{server.pid} .* comes in$/).flatten.map(&:to_i)
      expect(come).to include(*(second - first), *workers(server))
      gone = said.scan(/^rperf: the program (\d+) has ended$/).flatten.map(&:to_i)
      expect(gone).to match_array(first | second)
    end
    expect(stop_server(server).messages).to eq([])
  end
end
