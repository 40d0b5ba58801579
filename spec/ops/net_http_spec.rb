# frozen_string_literal: true

# Requests of Net::HTTP are ops, whose names are the method and the server.
RSpec.describe "Ops of Net::HTTP", vm: true do
  include OpPrograms

  define_method(:told_of) do |program, *options, library: %(require "net/http"\n), **run|
    ops_of(program, *options, head: library + OpPrograms::HTTP, **run)
  end

  # What the program's server is called.
  def server(port) = "127.0.0.1:#{port}"

  it "have the method and the server as their names, and each request is one" do
    port = told_of(<<~RUBY)
      measured do
        Net::HTTP.get(URI("http://127.0.0.1:\#{PORT}/a?b=c"))
        http = Net::HTTP.new("127.0.0.1", PORT)
        # Not connected: it calls itself.
        3.times { http.get("/") }
        http.start do
          http.head("/")
          http.request_post("/", "body") { |response| response.read_body }
          http.send_request("PURGE", "/x")
          http.request(Net::HTTP::Put.new("/"), "text")
        end
      end
      puts PORT
    RUBY
    expect(op_calls).to eq("[HTTP] GET #{server(port)}" => 4, "[HTTP] HEAD #{server(port)}" => 1,
                           "[HTTP] POST #{server(port)}" => 1, "[HTTP] PURGE #{server(port)}" => 1,
                           "[HTTP] PUT #{server(port)}" => 1)
  end

  # Each kind of wrapper notes that it was called, for requests of a connection that there is.
  wrappers = <<~'RUBY'
    CALLED = []
    def wrap_by_alias(kind)
      Net::HTTP.class_eval do
        alias_method :"request_without_#{kind}", :request
        define_method(:request) do |*arguments, &block|
          CALLED << kind if started?
          __send__(:"request_without_#{kind}", *arguments, &block)
        end
      end
    end

    def wrap_by_module
      Net::HTTP.prepend(Module.new do
        def request(...)
          CALLED << "module" if started?
          super
        end
      end)
    end

    def get = Net::HTTP.get(URI("http://127.0.0.1:#{PORT}/"))
  RUBY

  it "are those of programs that wrap the method by an alias, before and while they are measured" do
    port, called = told_of(<<~RUBY)
      #{wrappers}
      wrap_by_alias("first")
      measured do
        get
        wrap_by_alias("second")
        get
      end
      wrap_by_alias("third")
      get
      puts [PORT, CALLED].to_json
    RUBY
    expect(called).to eq(%w[first second first third second first])
    expect(op_calls).to eq("[HTTP] GET #{server(port)}" => 2)
  end

  it "are those of programs that wrap the method by a module, before and while they are measured" do
    port, called = told_of(<<~RUBY)
      #{wrappers}
      wrap_by_alias("alias")
      wrap_by_module
      measured do
        get
        wrap_by_module
        get
      end
      puts [PORT, CALLED].to_json
    RUBY
    expect(called).to eq(%w[module alias module module alias])
    expect(op_calls).to eq("[HTTP] GET #{server(port)}" => 2)
  end

  it "have the port only where it isn't the protocol's own, and IPv6 addresses in brackets" do
    told_of(<<~RUBY)
      # Nobody is asked for it: the request fails before, within the op.
      refuse = Module.new { def connect = raise(IOError, "refused") }
      ask = lambda do |host, port, use_ssl|
        http = Net::HTTP.new(host, port).extend(refuse)
        http.use_ssl = use_ssl
        http.get("/")
      rescue IOError
        nil
      end
      measured do
        ask.call("API.example.com", 80, false)
        ask.call("api.example.com", 443, true)
        ask.call("api.example.com", 443, false)
        ask.call("api.example.com", 80, true)
        ask.call("::1", 80, false)
        ask.call("::1", 8080, false)
      end
    RUBY
    expect(op_calls).to eq("[HTTP] GET api.example.com" => 2, "[HTTP] GET api.example.com:443" => 1,
                           "[HTTP] GET api.example.com:80" => 1, "[HTTP] GET [::1]" => 1, "[HTTP] GET [::1]:8080" => 1)
  end

  it "are the leaf of samples while the program waits for an answer" do
    port, blocked = told_of(<<~RUBY)
      profile = measured(frequency: 1000) { Net::HTTP.start("127.0.0.1", PORT) { |http| 4.times { http.get("/slow") } } }
      names = profile[:samples].each_with_object(Hash.new(0)) do |(frames, weight), sums|
        op = frames.find { |path, _| path == "<op>" }
        sums[op.last] += weight if op && frames.any? { |_, name| name == "Net::HTTP#get" }
      end
      puts [PORT, names].to_json
    RUBY
    expect(blocked.keys).to eq(["[HTTP] GET #{server(port)}"])
    expect(blocked.values.first).to be_between(150_000_000, 2_000_000_000)
  end

  it "have nothing of a path, a query, a header or a body in any byte of the profile" do
    told_of(<<~RUBY)
      measured do
        Net::HTTP.start("127.0.0.1", PORT) do |http|
          http.get("/s3cr3t-path?token=s3cr3t-query", "Authorization" => "s3cr3t-header")
          http.post("/", "s3cr3t-body")
          request = Net::HTTP::Get.new(URI("http://s3cr3t-user:s3cr3t-password@127.0.0.1:\#{PORT}/"))
          request.basic_auth("s3cr3t-user", "s3cr3t-password")
          http.request(request)
        end
      end
      puts PORT
    RUBY
    expect(op_calls.values.sum).to eq(3)
    expect(bytes_of).not_to include("s3cr3t")
  end

  # Run in a session and without one. What each does with a Net::HTTP is told in the end.
  behaviour = <<~'RUBY'
    class Sub < Net::HTTP
      def request(request, body = nil, &) = super(request, "#{body} and more", &)
    end

    http = Net::HTTP.new("127.0.0.1", PORT)
    http.max_retries = 0
    impatient = Net::HTTP.new("127.0.0.1", PORT)
    impatient.max_retries = 0
    impatient.read_timeout = 0.05
    ran = []
    cases = {
      value: -> { http.request(Net::HTTP::Get.new("/")).code },
      block: -> { http.request(Net::HTTP::Get.new("/")) { |it| ran << it.read_body }.body },
      body: -> { http.request(Net::HTTP::Post.new("/"), "text").code },
      session: -> { http.start { |it| [it.request(Net::HTTP::Get.new("/")).code, it.started?].to_s } },
      none: -> { http.request },
      many: -> { http.request(1, 2, 3) },
      keywords: -> { http.request(Net::HTTP::Get.new("/"), **{}).code },
      more_keywords: -> { http.request(Net::HTTP::Get.new("/"), a: 1) },
      odd: -> { http.start { |it| it.request(Object.new) } },
      nothing: -> { http.start { |it| it.request(nil) } },
      drop: -> { http.start { |it| it.request(Net::HTTP::Get.new("/drop")) } },
      time_out: -> { impatient.start { |it| it.request(Net::HTTP::Get.new("/never")) } },
      refused: -> { Net::HTTP.new("127.0.0.1", 1).request(Net::HTTP::Get.new("/")) },
      no_host: -> { Net::HTTP.new("").request(Net::HTTP::Get.new("/")).class },
      raised: -> { http.request(Net::HTTP::Get.new("/")) { raise ArgumentError, "mine" } },
      thrown: -> { catch(:done) { http.request(Net::HTTP::Get.new("/")) { throw :done, "caught" } } },
      broken: -> { [1].each { http.request(Net::HTTP::Get.new("/")) { break } }.to_s },
      subclass: -> { Sub.new("127.0.0.1", PORT).request(Net::HTTP::Post.new("/sub"), "text").code },
      frozen: -> { Net::HTTP.new("127.0.0.1", PORT).freeze.request(Net::HTTP::Get.new("/")) }
    }
    results = lambda do
      ran.clear
      all = cases.map { |name, work| [name, outcome(&work), http.started?] }
      [all, ran, Array.new(SEEN.size) { SEEN.pop }]
    end
    alone = results.call
    inside = nil
    measured { inside = results.call }
    after = results.call
    puts [alone, inside, after].to_json
  RUBY

  it "change nothing of what requests return, raise and send" do
    alone, inside, after = told_of(behaviour)
    expect(inside).to eq(alone)
    expect(after).to eq(alone)
    expect(alone.first.to_h { |row| row.flatten.first(2) }).to include(
      "value" => "returned", "none" => "ArgumentError", "drop" => "EOFError", "time_out" => "Net::ReadTimeout",
      "refused" => "Errno::ECONNREFUSED", "raised" => "ArgumentError", "thrown" => "returned", "frozen" => "FrozenError"
    )
  end

  it "end with an exception, a throw, a timeout, and with their thread" do
    port = told_of(<<~RUBY)
      require "timeout"
      measured do
        ask = ->(path, &block) { Net::HTTP.start("127.0.0.1", PORT) { |it| it.request(Net::HTTP::Get.new(path), &block) } }
        5.times do
          begin
            ask.call("/") { raise "no" }
          rescue RuntimeError
            nil
          end
          catch(:done) { ask.call("/") { throw :done } }
          begin
            Timeout.timeout(0.01) { ask.call("/never") }
          rescue Timeout::Error
            nil
          end
        end
        begun = Queue.new
        thread = Thread.new { ask.call("/") { begun << true; sleep } }
        begun.pop
        thread.kill.join
        # An op that had stayed open would be around this one, and its samples' leaf.
        Rperf.op("the next") { sleep 0.03 }
        ask.call("/")
      end
      puts PORT
    RUBY
    calls = op_calls
    expect(calls["[op] the next"]).to eq(1)
    # Those that time out may do so as they connect.
    expect(calls["[HTTP] GET #{server(port)}"]).to be_between(12, 17)
  end

  it "are those of their fiber, which may give up control in one" do
    port, ops = told_of(<<~RUBY)
      profile = measured(frequency: 1000) do
        http = Net::HTTP.start("127.0.0.1", PORT)
        other = Net::HTTP.new("127.0.0.1", PORT)
        inside = Fiber.new { http.request(Net::HTTP::Get.new("/")) { Fiber.yield } }
        inside.resume
        sleep 0.05
        # Not connected, while another fiber is in a request of its own.
        other.request(Net::HTTP::Head.new("/slow"))
        inside.resume
        http.finish
      end
      sums = profile[:samples].each_with_object(Hash.new(0)) do |(frames, weight), all|
        next unless frames.any? { |path, name| path == "<C method>" ? name == "Kernel#sleep" : name == "<main>" }

        op = frames.find { |path, _| path == "<op>" }
        all[op ? op.last[/GET|HEAD/] : "none"] += weight
      end
      puts [PORT, sums].to_json
    RUBY
    expect(op_calls).to eq("[HTTP] GET #{server(port)}" => 1, "[HTTP] HEAD #{server(port)}" => 1)
    expect(ops["none"]).to be > 40_000_000
    expect(ops["HEAD"]).to be > 40_000_000
    expect(ops["GET"].to_i).to be < 20_000_000
  end

  it "are nested where a request asks another server meanwhile, and is within another op" do
    port = told_of(<<~RUBY)
      measured do
        Rperf.op("report", kind: :http) do
          Net::HTTP.new("127.0.0.1", PORT).request(Net::HTTP::Get.new("/")) do
            Net::HTTP.new("127.0.0.1", PORT).request(Net::HTTP::Head.new("/"))
          end
        end
      end
      puts PORT
    RUBY
    expect(op_calls).to eq("[HTTP] report" => 1, "[HTTP] GET #{server(port)}" => 1, "[HTTP] HEAD #{server(port)}" => 1)
  end

  it "are left out where the session begins or ends within one" do
    port = told_of(<<~RUBY)
      http = Net::HTTP.start("127.0.0.1", PORT)
      http.request(Net::HTTP::Get.new("/")) { Rperf.start(mode: :wall, measure: :ops, output: "p.pb.gz") }
      http.head("/")
      http.request(Net::HTTP::Get.new("/")) { Rperf.stop }
      # A session of another kind, and none.
      Rperf.start(mode: :wall, output: "q.pb.gz") { http.get("/") }
      http.request(Net::HTTP::Get.new("/")) { measured { http.class } }
      http.get("/")
      Rperf.start(mode: :wall, measure: :ops, output: "r.pb.gz") { http.request_get("/") }
      puts PORT
    RUBY
    expect(op_calls("q.pb.gz")).to be_empty
    expect(op_calls).to be_empty
    expect(op_calls("r.pb.gz")).to eq("[HTTP] GET #{server(port)}" => 1)
  end

  it "are the main Ractor's only" do
    port, code = told_of(<<~RUBY, stderr: /\A(.*warning: Ractor.*\n.*)?\z/)
      # What its constants have can be another Ractor's only if it is frozen.
      Net::HTTP.constants.each { |name| Ractor.make_shareable(Net::HTTP.const_get(name)) rescue nil }
      code = nil
      measured do
        ractor = Ractor.new(PORT) do |port|
          http = Net::HTTP.new("127.0.0.1", port, nil)
          http.get("/").code
        rescue StandardError => error
          error.class.to_s
        end
        code = ractor.respond_to?(:value) ? ractor.value : ractor.take
        Net::HTTP.new("127.0.0.1", PORT).head("/")
      end
      alone = Ractor.new(PORT) { |port| Net::HTTP.new("127.0.0.1", port, nil).get("/").code rescue $!.class.to_s }
      abort "another result" unless code == (alone.respond_to?(:value) ? alone.value : alone.take)
      puts [PORT, code].to_json
    RUBY
    expect(code).not_to be_nil
    expect(op_calls).to eq("[HTTP] HEAD #{server(port)}" => 1)
  end

  it "go on in a forked child that joins the session, and end in one that doesn't" do
    port = told_of(<<~RUBY)
      [true, false].each do |inherit|
        measured(inherit:, output: "\#{inherit}.pb.gz") do
          http = Net::HTTP.start("127.0.0.1", PORT)
          http.request(Net::HTTP::Get.new("/")) do
            pid = fork do
              Net::HTTP.new("127.0.0.1", PORT).head("/")
            end
            Process.wait(pid)
            exit!(1) unless $?.success?
          end
        end
      end
      puts PORT
    RUBY
    expect(op_calls("true.pb.gz")).to eq("[HTTP] GET #{server(port)}" => 1, "[HTTP] HEAD #{server(port)}" => 1)
    expect(op_calls("false.pb.gz")).to eq("[HTTP] GET #{server(port)}" => 1)
  end

  it "are measured by rperf record, from the first line on" do
    write_file("program.rb",
               %(require "net/http"\n#{OpPrograms::HTTP}Net::HTTP.new("127.0.0.1", PORT).get("/"); puts PORT))
    outcome = rperf("record", "-m", "wall", "--measure", "ops", "-o", "p.pb.gz", "--", ruby, "program.rb")
    expect([outcome.status, outcome.stdout]).to match([be_success, /\A\d+\n\z/])
    expect(op_calls).to eq("[HTTP] GET #{server(outcome.stdout.chomp)}" => 1)
  end
end
