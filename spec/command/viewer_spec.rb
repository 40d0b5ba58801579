# frozen_string_literal: true

require "json"
require "net/http"
require "zlib"

# The web viewer, as the command writes and serves it. The behaviour of the page is tested in viewer/.
RSpec.describe "the web viewer" do
  include Ports

  main = ["/app/main.rb", "<main>"]
  hostile = ["/app/main.rb", "</script><script>x</script>"]

  def save(name, stacks)
    rows = stacks.map { |frames, count| [frames, count * 1_000_000, 1, 0, count, count * 500_000] }
    Rperf.save(path_to(name), { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: rows })
  end

  before do
    save("rperf.data", [[[hostile, main], 40], [[main], 60]])
    save("other.pb.gz", [[[hostile, main], 90], [[main], 60]])
  end

  # The data embedded in a page: the header, and all text.
  def data_of(page)
    embedded = page[%r{<script type="application/x-rperf" id="profile">([A-Za-z0-9+/=]+)</script>}, 1]
    data = embedded.unpack1("m")
    header = header_of(data)
    bytes = Zlib.gunzip(data)
    [header, bytes[(8 + bytes[4, 4].unpack1("V"))..]]
  end

  # The header of data as a page has them, or gets them.
  def header_of(data)
    bytes = Zlib.gunzip(data)
    expect(bytes[0, 4]).to eq("RPV1")
    JSON.parse(bytes[8, bytes[4, 4].unpack1("V")], symbolize_names: true)
  end

  it "is one file that embeds the profile and refers to nothing else" do
    outcome = rperf("report", "--html")
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, ""])
    expect(outcome.stderr).to match(/\Arperf: wrote rperf\.html \(\d+ KB\)\n\z/)
    page = File.read(path_to("rperf.html"))
    expect(page).not_to include("@RPERF_DATA@", hostile[1])
    expect(page.scan(/(?:src|href)="(?!data:)[^"]*"/)).to be_empty
    header, body = data_of(page)
    expect(header[:value_types].map { |type| type[:name] }).to eq(%w[samples wall cpu])
    expect(header[:profiles].map { |profile| profile[:title] }).to eq(["rperf.data"])
    expect(body).to include(hostile[1])
  end

  it "has what filters leave, and source files if asked to" do
    source = write_file("work.rb", "def work = 1\n")
    save("sourced.pb.gz", [[[[source, "Object#work"], main], 10]])
    rperf("report", "--html", "--source", "-o", "page.html", "--focus", "work", "rperf.data", "sourced.pb.gz")
    header, body = data_of(File.read(path_to("page.html")))
    expect(header[:profiles][0][:title]).to eq("rperf.data + sourced.pb.gz")
    expect(body).to include("Object#work", "def work = 1\n")
    node = header[:columns].find { |column| column[:name] == "profiles/0/node" }
    expect(node[:count]).to eq(1)
  end

  it "compares two profiles" do
    outcome = rperf("diff", "rperf.data", "other.pb.gz", "--html", "-o", "diff.html", "--normalize", "total")
    expect(outcome.status.exitstatus).to eq(0)
    header, = data_of(File.read(path_to("diff.html")))
    expect(header[:profiles].map { |profile| profile[:title] }).to eq(["rperf.data", "other.pb.gz"])
    expect(header[:diff]).to match(base: 0, target: 1, scale: be_within(1e-9).of(1.5), normalised: "total", by: "self",
                                   changes: have_attributes(size: 3))
    expect(header[:diff][:changes][1]).to eq({ runs: [1, 1], base: 100_000_000, target: 100_000_000, verdict: 1 })
  end

  describe "served" do
    # Starts the command, yields the address that it tells, and ends it by a signal; its status.
    def serve(*arguments, signal: :INT, env: {})
      reader, writer = IO.pipe
      pid = Process.spawn({ "BROWSER" => nil, "SSH_TTY" => nil, "SSH_CONNECTION" => nil, **env },
                          *rperf_command(*arguments), chdir: directory, out: File::NULL, err: writer)
      writer.close
      yield URI(reader.gets[%r{http://127\.0\.0\.1:\d+/\h{32}/}]), reader
      Process.kill(signal, pid)
      Process.wait2(pid).last
    ensure
      reader.close
    end

    it "is the same page, at its address only, until a signal comes" do
      status = serve("report", "--web", "--no-browser") do |address|
        answer = Net::HTTP.get_response(address)
        expect(answer.code).to eq("200")
        expect(data_of(answer.body).first[:profiles][0][:title]).to eq("rperf.data")
        expect(answer["Content-Security-Policy"]).to include("default-src 'none'", "frame-ancestors 'none'")
        expect(Net::HTTP.get_response(URI.join(address, "/")).code).to eq("404")
        expect(Net::HTTP.get_response(address, { "Host" => "evil.example" }).code).to eq("403")
      end
      expect(status).to eq(0)
      expect(serve("diff", "rperf.data", "other.pb.gz", "--web", signal: :TERM) { |address| address }).to eq(0)
    end

    # A number of snapshots, each of the time since the profile began.
    it "has snapshots of a running program, at an interval and when the page wants one" do
      code = "def work = loop { 100.times { |i| i.to_s } }\nputs Rperf.listen\nwork"
      listening(code) do |program|
        arguments = ["report", "--live", program.pid.to_s, "--interval", "1", "--no-browser"]
        status = serve(*arguments) do |address|
          get = ->(place) { Net::HTTP.get_response(URI.join(address, place)) }
          expect(get.call("").body).to include(">server:./<")
          list = -> { JSON.parse(get.call("snapshots.json").body) }
          wait_until("snapshots") { list.call["snapshots"].size > 1 }
          expect(list.call).to include("can_take" => true, "process" => program.pid)
          expect(list.call["notes"]).to all(start_with("The program takes long for a snapshot"))
          expect(Net::HTTP.start(address.host, address.port) { |http| http.head("#{address.path}snapshots.json") }.code)
            .to eq("200")
          live = -> { JSON.parse(get.call("live.json").body) }
          generation = live.call["generation"]
          wait_until("news") { live.call["generation"] > [generation, 1].max }
          expect(live.call).to include("note" => nil, "has_ended" => false)
          shown = header_of(get.call("live.rpv").body)
          expect(shown[:profiles].first[:title]).to start_with("#{program.pid} ")
          first, second = list.call["snapshots"]
          expect(second["duration_ns"]).to be > first["duration_ns"]
          taken = Net::HTTP.post(URI.join(address, "snapshots"), "", { "X-Rperf" => "1" })
          id = JSON.parse(taken.body)["id"]
          expect([taken.code, list.call["snapshots"].last["id"].to_i]).to match(["201", be >= id.to_i])
          expect(Net::HTTP.post(URI.join(address, "snapshots"), "").code).to eq("403")
          File.binwrite(path_to("x.pb.gz"), get.call("snapshots/#{id}.pb.gz").body)
          expect(Rperf.load(path_to("x.pb.gz")).top(sort: :total).map { |row| row[:name] }).to include("Object#work")
          ["snapshots/#{id}.rpv", "diff/#{first["id"]}/#{id}.rpv"].zip([1, 2]).each do |place, count|
            expect(header_of(get.call(place).body)[:profiles].size).to eq(count)
          end
          expect(get.call("snapshots/99.rpv").code).to eq("404")
          Process.kill(:STOP, program.pid)
          taken = Net::HTTP.post(URI.join(address, "snapshots"), "", { "X-Rperf" => "1" })
          expect([taken.code, taken.body]).to match(["409", /was stopped \(SIGSTOP\)/])
          wait_until("note") { live.call["note"]&.include?("was stopped (SIGSTOP)") }
          Process.kill(:CONT, program.pid)
          wait_until("going on") { live.call["note"].nil? }
        end
        expect(status).to eq(0)
        wait_until("end of the session") { ask(program.lines.first).last["session"].nil? }
      end
    end

    it "has snapshots of a program that can't be followed, and why" do
      listening("puts Rperf.listen; Rperf.start(mode: :trace); loop { 1.to_s }") do |program|
        serve("report", "--live", program.pid.to_s, "--no-browser") do |address|
          get = ->(place) { Net::HTTP.get_response(URI.join(address, place)).body }
          list = -> { JSON.parse(get.call("snapshots.json"))["snapshots"] }
          wait_until("a snapshot") { list.call.any? }
          live = JSON.parse(get.call("live.json"))
          expect(live).to include("generation" => 0, "note" => /session traces calls/, "has_ended" => false)
          expect(header_of(get.call("snapshots/#{list.call.last["id"]}.rpv"))[:profiles].size).to eq(1)
          Process.kill(:KILL, program.pid)
          wait_until("the end") { JSON.parse(get.call("live.json"))["has_ended"] }
          expect(list.call).not_to be_empty
        end
      end
    end

    # The user namespace of an emulated run has no second user.
    it "is opened by the browser that the environment names", emulated: false do
      opener = write_file("browser", "#!/bin/sh\nprintf %s \"$1\" > opened.part && mv opened.part opened\n")
      File.chmod(0o755, opener)
      serve("report", "--web", env: { "BROWSER" => opener }) do |address|
        wait_until("the browser") { File.exist?(path_to("opened")) }
        # It leads to the page once: others can see it in the browser's command line.
        opened = URI(File.read(path_to("opened")))
        expect([opened.port, opened.path == address.path]).to eq([address.port, false])
        if Process.uid.zero?
          code = "Process::Sys.setuid(65534); p Net::HTTP.get_response(URI(#{opened.to_s.dump})).code"
          expect(run(ruby, "-rnet/http", "-e", code).stdout).to eq("\"403\"\n")
        end
        first, second = Array.new(2) { Net::HTTP.get_response(opened) }
        expect([first.code, URI.join(opened, first["Location"]), second.code]).to eq(["303", address, "403"])
        expect(second.body).to match(/\Athis address leads to the viewer once, .* rperf has printed in its terminal$/)
      end
    end

    it "says over SSH what to do" do
      serve("report", "--web", env: { "SSH_TTY" => "/dev/pts/0" }) do |address, messages|
        expect(messages.gets).to include("ssh -L #{address.port}:127.0.0.1:#{address.port} ")
      end
    end
  end

  {
    %w[report --html --top] => "--html and --top can't be combined",
    %w[report --live 1 --top] => "--live takes --interval and --no-browser only",
    %w[report --top --no-browser] => "--no-browser goes with --web",
    %w[report --tree --source] => "--source goes with --html or --web",
    %w[diff --text rperf.data other.pb.gz -o x.html] => "-o goes with --html or --format",
    %w[report --html -o no/such/directory.html] => "-o must be in a directory that exists, not 'no/such/directory.html'"
  }.each do |arguments, message|
    it "refuses #{arguments.join(" ")}" do
      outcome = rperf(*arguments)
      expect(outcome.status.exitstatus).to be_between(1, 2)
      expect(outcome.stderr.lines).to match([include(message)])
    end
  end
end
