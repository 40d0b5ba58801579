# frozen_string_literal: true

require "stringio"
require "zlib"

# Statements have values that nobody may see who sees a profile: the names of ops are what all outputs have of them.
RSpec.describe "Values of statements", vm: true, skip: Servers.missing("activesupport") do
  include OpPrograms
  include Ports

  # A secret in each place where SQL has values, comments or what can't be read. They are no part of the program's
  # source, which some outputs have.
  let(:statements) do
    [
      "SELECT * FROM items WHERE token = 's3cr3t' AND id IN (1, 2, 's3cr3t')",
      "SELECT * FROM items WHERE token = 'it''s s3cr3t' AND name = 'it\\'s s3cr3t'",
      "SELECT * FROM items WHERE token = E'\\'s3cr3t' OR token = N's3cr3t' OR token = _utf8's3cr3t'",
      "SELECT $$s3cr3t$$, $tag$ 's3cr3t $$ $tag$, 1",
      "SELECT 1 /* s3cr3t /* s3cr3t */ */ FROM items -- s3cr3t",
      "SELECT 1 FROM items # s3cr3t\nWHERE id = 2",
      "SELECT * FROM items WHERE token = \"s3cr3t\" OR token IN (\"sesame\", 'sesame') OR token LIKE \"sesame%\"",
      "INSERT INTO items (token) VALUES ('s3cr3t'), ('s3cr3t'), (\"s3cr3t\")",
      "UPDATE items SET token = 's3cr3t",
      "SELECT $tag$s3cr3t",
      "SELECT 1 /* s3cr3t",
      "SELECT 's3cr3t' || 's3cr3t\xFF' || \x00's3cr3t'".b,
      "SELECT #{"'s3cr3t', " * 400} 1"
    ]
  end

  # Each is called directly and by Active Support. One of them is repeated with other values (N+1).
  program = <<~'RUBY'
    require "active_support"
    require "active_support/notifications"
    require "rperf/rack"
    require "rperf/sidekiq"

    STATEMENTS, SECRET = Marshal.load(File.binread("statements"))

    def query(sql) = Rperf.op(sql, kind: :sql) { sleep(0.002) }
    def notified(sql)
      values = { sql: "EXPLAIN #{sql}", binds: [SECRET], type_casted_binds: [SECRET], name: SECRET }
      ActiveSupport::Notifications.instrument("sql.active_record", values) { sleep(0.002) }
    end

    APP = Rperf::RackMiddleware.new(lambda { |_|
      STATEMENTS.each { |sql| query(sql) && notified(sql) }
      6.times { |id| query("SELECT * FROM lines WHERE token = '#{SECRET}-#{id}'") }
      [200, {}, []]
    })
    def get(path)
      APP.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => "a=#{SECRET}" })
    end
    def job
      work = { "class" => "MailJob", "args" => [SECRET] }
      Rperf::SidekiqMiddleware.new.call(nil, work, "default") { query(STATEMENTS[0]) }
    end
    def measured(**, &) = Rperf.start(mode: :wall, frequency: 1000, measure: %i[ops requests blame], **, &)
    def work = get("/orders") && job
  RUBY

  before { File.binwrite(path_to("statements"), Marshal.dump([statements, "s3cr3t"])) }

  # What the formats of `report -o` have, as it is without compression and encoding.
  def written(extension, *arguments)
    name = "out.#{extension}"
    outcome = rperf("report", "-o", name, *arguments, "p.pb.gz")
    expect([outcome.status, extension]).to match([be_success, extension]), outcome.stderr
    bytes = File.binread(path_to(name))
    bytes << Zlib.gunzip(bytes[%r{<script type="application/x-rperf" id="profile">(.*?)</script>}m, 1].unpack1("m")) if
      extension == "html"
    extension == "pb.gz" ? Zlib.gunzip(bytes) : bytes
  end

  def printed(*arguments)
    outcome = rperf(*arguments)
    expect([arguments, outcome.status]).to match([arguments, be_success]), outcome.stderr
    outcome.stdout + outcome.stderr
  end

  # All outputs have ops, and none has the secret. Where ops aren't named, `names` is false.
  def expect_secret_kept(outputs, names: true)
    outputs.each do |output, text|
      expect([output, text.b.match?(/s3cr3t|sesame/i)]).to eq([output, false])
      expect([output, text.b.include?("SELECT")]).to eq([output, true]) if names
    end
  end

  def profile
    write_file("program.rb", "#{program_text}\nmeasured(output: 'p.pb.gz') { 5.times { work } }\n")
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "program.rb")
    expect([outcome.status, outcome.stdout, outcome.stderr]).to match([be_success, "", ""])
    calls = op_calls
    expect(calls.values.sum).to eq(5 * ((2 * statements.size) + 6 + 1))
    expect(calls.size).to be > 20
  end

  it "are in no file of any format" do
    profile
    files = %w[pb.gz html json collapsed txt md dot callgrind].to_h { |extension| [extension, written(extension)] }
    files["html with sources"] = written("html", "--source")
    files["p.pb.gz"] = bytes_of
    expect_secret_kept(files)
  end

  it "are on no page of a command" do
    profile
    pages = [%w[--top], %w[--text], %w[--text --lines], %w[--methods], %w[--tree], %w[--ops], %w[--bottom-up --tree],
             %w[--top --by op], %w[--callers op], %w[--top --by file -n 0]]
    pages = pages.map { |page| ["report", *page, "p.pb.gz"] }
    whys = [%w[why p.pb.gz], %w[why p.pb.gz orders], %w[why --json p.pb.gz], %w[why --json p.pb.gz orders]]
    expect_secret_kept((pages + whys).to_h { |arguments| [arguments, printed(*arguments)] }, names: false)
    expect(printed("report", "--ops", "p.pb.gz").scan("SELECT").size).to be > 20
    expect(printed("why", "--json", "p.pb.gz")).to include("SELECT * FROM lines WHERE token = ?")
    formats = %w[markdown json].map { |format| ["diff", "--format", format, "p.pb.gz", "p.pb.gz"] }
    expect_secret_kept(formats.to_h { |arguments| [arguments, printed(*arguments)] }, names: false)
  end

  # A program that runs, with a session that measures ops, and rperf's port.
  def serving_requests(&)
    write_file("program.rb", "#{program_text}\n$stdout.sync = true; $0 = 'app of #{name}'\n" \
                             "measured\n5.times { work }\nputs Rperf.listen\nloop { work }\n")
    listening("load 'program.rb'", &)
  end

  # That no other program on this machine has.
  def name = File.basename(File.dirname(directory))

  define_method(:program_text) { program }

  # The body of the answer to a GET.
  def body_of(path)
    UNIXSocket.open(sockets.first) do |port|
      port.timeout = 30 * Commands::SLOWNESS
      port.write("GET #{path} HTTP/1.1\r\nConnection: close\r\n\r\n")
      head, body = port.read.b.split("\r\n\r\n", 2)
      expect([path, head]).to match([path, start_with("HTTP/1.1 200 ")])
      body.start_with?("\x1F\x8B".b) ? Zlib.gunzip(body) : body
    end
  end

  it "are in no answer of the port, and on no page of a command that asks it", if: RUBY_PLATFORM.include?("linux") do
    serving_requests do |running|
      pid = running.pid.to_s
      bodies = %w[/v1/hello /v1/stacks /v1/memory /v1/delta].to_h { |path| [path, body_of(path)] }
      expect_secret_kept(bodies, names: false)
      expect_secret_kept(%w[/v1/snapshot /v1/profile?seconds=0.3].to_h { |path| [path, body_of(path)] })
      pages = [["stacks", pid], ["stacks", "--json", pid], ["top", "--once", pid], ["top", "--once", "--json", pid],
               ["snapshot", "--print", pid], ["snapshot", "-o", "s.collapsed", pid]]
      expect_secret_kept(pages.to_h { |arguments| [arguments, printed(*arguments)] }, names: false)
      expect_secret_kept({ snapshot: File.binread(path_to("s.collapsed")) })
    end
  end

  # Takes what is sent to it, without an answer's body; yields its URL.
  def collector(sent)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { take(server.accept, sent) } }
    yield "http://127.0.0.1:#{server.addr[1]}"
  ensure
    thread.kill.join
    server.close
  end

  def take(client, sent)
    head = client.each_line("\r\n", chomp: true).take_while { |line| !line.empty? }
    sent << [head.join("\n"), client.read(head.grep(/\Acontent-length: /i).first[/\d+/].to_i)]
    client.write("HTTP/1.1 200 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  ensure
    client.close
  end

  # All that is compressed in it, too.
  def unpacked(head, body)
    gzipped = body.b.index("\x1F\x8B\x08".b)
    "#{head}#{body}".b + Zlib::GzipReader.new(StringIO.new(body.b[gzipped..])).read.b
  end

  it "are in nothing that is pushed, to Pyroscope or by OTLP", if: RUBY_PLATFORM.include?("linux") do
    sent = Queue.new
    serving_requests do
      %w[--to --otlp].each do |option|
        collector(sent) do |url|
          printed("push", option, url, "--every", "1", "-n", "1", "--match", name)
        end
      end
    end
    bodies = Array.new(sent.size) { unpacked(*sent.pop) }
    expect(bodies.size).to eq(2)
    expect_secret_kept(bodies.each_with_index.to_h { |body, number| [number, body] })
  end

  it "are in nothing that Ruby gets" do
    profile
    loaded = Rperf.load(path_to("p.pb.gz"))
    expect_secret_kept({ ops: loaded.ops.inspect, samples: loaded.to_h.inspect, top: loaded.top(by: :op).inspect })
  end
end
