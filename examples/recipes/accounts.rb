# frozen_string_literal: true

# Accounts with passwords, and a thread that sends mail: what the specs and the tests are about.

require "openssl"

# An account, which keeps a digest of its password.
class Account
  def initialize(name, password)
    @name = name
    @salt = OpenSSL::Random.random_bytes(16)
    @digest = digest(password)
  end

  attr_reader :name

  def password?(password) = digest(password) == @digest

  private

  # Slow on purpose, as it should be.
  def digest(password)
    OpenSSL::KDF.pbkdf2_hmac(password, salt: @salt, iterations: 100_000, length: 32, hash: "SHA256")
  end
end

# Sends mail in a thread of its own, which waits for work most of the time.
class Mailer
  def initialize
    @sent = []
    @queue = Thread::Queue.new
    @thread = Thread.new { while (mail = @queue.pop) do deliver(mail) end }
  end

  def send_later(mail) = @queue << mail

  def sent
    sleep 0.1 until @queue.empty? && @queue.num_waiting == 1
    @sent
  end

  private

  def deliver(mail)
    sleep 0.05
    @sent << mail
  end
end
