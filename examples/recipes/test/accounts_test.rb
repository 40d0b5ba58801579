# frozen_string_literal: true

require "minitest/autorun"
require_relative "../accounts"

# Each test makes accounts, as `setup` does.
class AccountTest < Minitest::Test
  def setup
    @accounts = %w[ann bob eve].map { |name| Account.new(name, "secret") }
  end

  def test_it_has_a_name = assert_equal(%w[ann bob eve], @accounts.map(&:name))
  def test_it_knows_its_password = assert(@accounts.first.password?("secret"))
  def test_it_refuses_others = refute(@accounts.first.password?("Secret"))
end

class MailerTest < Minitest::Test
  def test_it_sends_mail
    mailer = Mailer.new
    mailer.send_later("hello")
    assert_equal ["hello"], mailer.sent
  end
end
