# frozen_string_literal: true

require "digest"
require "openssl"
require "socket"

# As LibraryCalls, of OpenSSL.
class OpenSSLCalls
  TIME = 0.03
  QUICK = %i[transfer untrusted make_keys ciphers].freeze
  # More than a socket holds.
  DATA = Random.new(42).bytes(400_000).freeze

  def transfer
    with_connection do |server, client|
      echo = Thread.new { server.write(server.read(DATA.size)).tap { server.close } }
      [client.write(DATA), digest(client.read), echo.value]
    end
  end

  def late_data = with_connection { |server, it| Thread.new { sleep(TIME) && server.puts("text") } && it.gets }
  def wait = with_connection { |server, _| server.to_io.wait_readable(TIME) }
  def accept_late = with_connection(late: TIME) { |server, client| client.puts("text") || server.gets }

  def read_with_timeout
    with_connection do |server, client|
      server.to_io.timeout = TIME
      [client.class, server.read(1)]
    end
  end

  def untrusted
    with_connection(OpenSSL::SSL::VERIFY_PEER) { :connected }
  rescue OpenSSL::SSL::SSLError => e
    e.message[/certificate verify failed/]
  end

  def make_keys
    key = OpenSSL::PKey::RSA.new(2048)
    curve = OpenSSL::PKey::EC.generate("prime256v1")
    [key.n.num_bits, key.verify("SHA256", key.sign("SHA256", DATA), DATA),
     curve.check_key, OpenSSL::PKey.generate_key("ED25519").oid, OpenSSL::Random.random_bytes(9_999).size]
  end

  def ciphers
    cipher, decipher = %i[encrypt decrypt].map do |way|
      OpenSSL::Cipher.new("aes-256-cbc").tap(&way).tap { |it| (it.key = "k" * 32) && (it.iv = "i" * 16) }
    end
    encrypted = cipher.update(DATA) + cipher.final
    derived = OpenSSL::KDF.pbkdf2_hmac("word", salt: "salt", iterations: 5_000, length: 20, hash: "SHA256")
    [digest(encrypted), decipher.update(encrypted) + decipher.final == DATA, derived.unpack1("H*")]
  end

  private

  def digest(data) = Digest::SHA256.hexdigest(data)[0, 20]

  # Both ends of a connection of this process to itself; the server's `late` seconds late.
  def with_connection(verify_mode = OpenSSL::SSL::VERIFY_NONE, late: 0)
    pair = UNIXSocket.pair
    server = OpenSSL::SSL::SSLSocket.new(pair[0], server_context)
    client = OpenSSL::SSL::SSLSocket.new(pair[1], client_context(verify_mode))
    accepting = Thread.new { sleep(late) && accept(server) }
    client.connect
    accepting.join
    yield(server, client)
  ensure
    accepting&.join
    pair.each(&:close)
  end

  # A client that doesn't trust it goes away.
  def accept(server)
    server.accept.class
  rescue OpenSSL::SSL::SSLError
    :refused
  end

  def client_context(verify_mode) = OpenSSL::SSL::SSLContext.new.tap { |it| it.verify_mode = verify_mode }

  def server_context
    @server_context ||= OpenSSL::SSL::SSLContext.new.tap do |context|
      context.key = OpenSSL::PKey::EC.generate("prime256v1")
      context.cert = certificate(context.key)
    end
  end

  def certificate(key)
    OpenSSL::X509::Certificate.new.tap do |it|
      it.subject = it.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
      it.public_key = key
      it.serial = 1
      it.not_before = Time.now - 60
      it.not_after = Time.now + 3_600
      it.sign(key, "SHA256")
    end
  end
end
