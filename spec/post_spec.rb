# frozen_string_literal: true

require "rperf"
require "rperf/web/post"
require "socket"

RSpec.describe "Rperf::Web::Post", vm: false do
  let(:post) { Rperf.const_get(:Web).const_get(:Post) }

  # What is said of a server that does this with its connection.
  def answered(body: "x")
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      client = server.accept
      yield client
    rescue SystemCallError
      nil # It was given up.
    ensure
      client&.close
    end
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    status, line = post.call("http://127.0.0.1:#{server.addr[1]}/", [], body)
    [status, line, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began]
  ensure
    thread&.kill&.join
    server&.close
  end

  it "sends large bodies whole" do
    body = "0123456789abcdef" * 100_000
    status, = answered(body:) do |client|
      client.gets("\r\n\r\n")
      sent = client.read(body.bytesize)
      client.write("HTTP/1.1 #{sent == body ? 200 : 400} x\r\nContent-Length: 0\r\n\r\n")
    end
    expect(status).to eq(200)
  end

  it "waits for no server for ever" do
    stub_const("Rperf::Web::Post::WHOLE", 0.5)
    slow = lambda do |client|
      loop do
        client.write("H")
        sleep 0.02
      end
    end
    expect(answered(&slow)).to match([0, /Net::ReadTimeout/, be_between(0.4, 5)])
    stub_const("Rperf::Web::Post::WHOLE", 60)
    endless = lambda do |client|
      client.write("HTTP/1.1 200 x\r\n")
      loop { client.write("A: #{"b" * 100_000}\r\n") }
    end
    expect(answered(&endless)).to match([0, /its answer has no end/, be < 30])
  end
end
