# frozen_string_literal: true

# A suite with two files and a test that takes longer than the others, and factories. Writes suite.pb.gz, for
# tests.test.ts: `ruby suite.rb record` runs itself below the command.
require "rbconfig"

root = File.expand_path("../../..", __dir__)
unless ARGV.empty?
  command = [RbConfig.ruby, File.join(root, "exe/rperf"), "record", "-m", "wall", "-o", "suite.pb.gz"]
  exec(*command, RbConfig.ruby, "-I#{File.join(root, "lib")}", __FILE__)
end

require "minitest"
require File.join(root, "spec/fixtures/notifications")
require "rperf/minitest"

# As FactoryBot has it. Users take longest, so that the order of factories is certain.
module Factory
  def self.run(name, *others)
    payload = { name:, strategy: :create, traits: [], overrides: {}, factory: nil }
    ActiveSupport::Notifications.instrument("factory_bot.run_factory", payload) do
      sleep(others.empty? ? 0.008 : 0.001)
      others.each { |it| run(it) }
    end
  end
end

# One of its tests takes longer than all others.
class CartTest < Minitest::Test
  def test_waits = assert(sleep(0.05))
  def test_is_empty = assert_empty([])
  def test_has_a_team = Factory.run(:team, :user, :user)
end

# Its tests make objects.
class OrderTest < Minitest::Test
  20.times do |number|
    define_method("test_#{number}") { assert_equal(number * 100, Array.new(number * 100, &:to_s).size) }
  end
end

exit(Minitest.run(%w[--seed 1]))
