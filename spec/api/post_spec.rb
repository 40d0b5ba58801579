# frozen_string_literal: true

require "rperf"
require "rperf/web/post"
require "socket"

RSpec.describe "Rperf::Web::Post", vm: true do
  let(:post) { Rperf.const_get(:Web).const_get(:Post) }

  # What is said of a server that does this with its connection.
  def answered(body: "x", scheme: "http")
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
    status, line = post.call("#{scheme}://127.0.0.1:#{server.addr[1]}/", [], body)
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
    lazy = ->(client) { sleep 0.02 while client.readpartial(1000) }
    expect(answered(body: "x" * (32 << 20), &lazy)).to match([0, /Net::WriteTimeout/, be_between(0.4, 5)])
    stub_const("Rperf::Web::Post::WHOLE", 60)
    endless = lambda do |client|
      client.write("HTTP/1.1 200 x\r\n")
      loop { client.write("A: #{"b" * 100_000}\r\n") }
    end
    expect(answered(&endless)).to match([0, /its answer has no end/, be < 30])
  end

  # A key, and a certificate of its own that is good for the loopback address.
  def certified
    require "openssl"
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=x")
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    extensions = OpenSSL::X509::ExtensionFactory.new
    certificate.add_extension(extensions.create_extension("subjectAltName", "IP:127.0.0.1"))
    [certificate.sign(key, "SHA256"), key]
  end

  # Speaks TLS to the client; what it says goes through a relay that yields each piece.
  def with_tls(client, certificate, key)
    inner, outer = UNIXSocket.pair
    relays = [Thread.new { IO.copy_stream(client, outer) },
              Thread.new { loop { yield outer.readpartial(1 << 16) } }]
    relays.each { |relay| relay.report_on_exception = false }
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(certificate, key)
    tls = OpenSSL::SSL::SSLSocket.new(inner, context).accept
    tls.gets("\r\n\r\n")
    tls.write("HTTP/1.1 200 x\r\nContent-Length: 10000\r\n\r\n#{"x" * 10_000}")
    relays.last.join
  ensure
    relays&.each { |relay| relay.kill.join }
  end

  it "waits for no record of TLS for ever" do
    certificate, key = certified
    store = OpenSSL::X509::Store.new.tap { |it| it.add_cert(certificate) }
    stub_const("OpenSSL::SSL::SSLContext::DEFAULT_CERT_STORE", store)
    post.load("https://127.0.0.1")
    slowly = lambda do |client|
      with_tls(client, certificate, key) do |piece|
        # The answer's record; the handshake's are shorter.
        next client.write(piece) if piece.bytesize < 10_000

        piece.each_char do |byte|
          client.write(byte)
          sleep 0.02
        end
      end
    end
    expect(answered(scheme: "https") { |client| with_tls(client, certificate, key) { |it| client.write(it) } })
      .to match([200, "x" * 200, be < 5])
    stub_const("Rperf::Web::Post::WHOLE", 0.5)
    expect(answered(scheme: "https", &slowly)).to match([0, /Net::ReadTimeout/, be_between(0.4, 5)])
  end
end
