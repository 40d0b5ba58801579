# frozen_string_literal: true

# Programs whose libraries' ops are measured. Goes with Commands.
module OpPrograms
  HEAD = <<~'RUBY'
    require "rperf"
    require "json"

    # With a session that measures ops, and writes them.
    def measured(**, &) = Rperf.start(mode: :wall, measure: :ops, output: "p.pb.gz", **, &)

    # What the block returns or raises: with the backtrace, but for lines of ours.
    def outcome
      ["returned", yield.to_s]
    rescue Exception => error
      lines = error.backtrace.take_while { |line| !line.include?("Object#outcome") }
      [error.class.to_s, error.message, lines.grep_v(%r{/lib/rperf/})]
    end

    # The outcomes of cases by name: without a session, in one, where the block runs afterwards, and after it.
    def beside_a_session(cases)
      results = -> { cases.map { |name, work| [name, outcome(&work)] } }
      alone = results.call
      inside = nil
      measured do
        inside = results.call
        yield if block_given?
      end
      [alone, inside, results.call]
    end
  RUBY

  # A server of HTTP/1.1 on a free port: a thread for each connection. /slow takes its time, /drop hangs up.
  HTTP = <<~'RUBY'
    require "socket"

    LISTENER = TCPServer.new("127.0.0.1", 0)
    PORT = LISTENER.local_address.ip_port
    SEEN = Queue.new

    def serve(client)
      while (line = client.gets)
        length = 0
        while (header = client.gets) && header != "\r\n"
          length = header[/\d+/].to_i if header.match?(/\Acontent-length:/i)
        end
        body = client.read(length)
        SEEN << [line.chomp, body]
        sleep(0.05) if line.include?("/slow")
        break if line.include?("/drop")
        sleep if line.include?("/never")

        client.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", *("ok" unless line.start_with?("HEAD")))
      end
    rescue SystemCallError, IOError
      nil
    ensure
      client.close
    end

    Thread.new { loop { Thread.new(LISTENER.accept) { |client| serve(client) } } }
  RUBY

  # @return what the program prints as JSON at its end
  def ops_of(program, *options, head: "", env: {}, stderr: "")
    script = write_file("program.rb", "#{HEAD}#{head}#{program}")
    outcome = run(ruby, *options, "-I#{Commands::ROOT}/lib", script, env:)
    expect([outcome.status, outcome.stderr]).to match([be_success, stderr])
    JSON.parse(outcome.stdout) unless outcome.stdout.empty?
  end

  # How often each op was called.
  def op_calls(name = "p.pb.gz")
    ops = Rperf.load(path_to(name)).ops or return {}
    ops[:ops].to_h { |it| it.values_at(:name, :calls) }
  end

  # The file as it would be without compression: whatever is in it.
  def bytes_of(name = "p.pb.gz") = Zlib.gunzip(File.binread(path_to(name)))
end
