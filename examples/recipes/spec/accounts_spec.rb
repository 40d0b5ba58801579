# frozen_string_literal: true

require_relative "spec_helper"
require_relative "../accounts"

RSpec.describe Account do
  let!(:accounts) { %w[ann bob eve].map { |name| described_class.new(name, "secret") } }

  it("has a name") { expect(accounts.map(&:name)).to eq(%w[ann bob eve]) }
  it("knows its password") { expect(accounts.first.password?("secret")).to be(true) }
  it("refuses others") { expect(accounts.first.password?("Secret")).to be(false) }
end

RSpec.describe Mailer do
  subject(:mailer) { described_class.new }

  it("sends nothing at first") { expect(mailer.sent).to be_empty }

  it "sends mail" do
    mailer.send_later("hello")
    expect(mailer.sent).to eq(["hello"])
  end
end
