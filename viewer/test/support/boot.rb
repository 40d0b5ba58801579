# frozen_string_literal: true

# A program that loads files of the standard library and runs two initializers in the way of Rails. Writes boot.pb.gz,
# for boot.test.ts: `ruby boot.rb record` runs itself below the command.
require "rbconfig"

root = File.expand_path("../../..", __dir__)
unless ARGV.empty?
  command = [RbConfig.ruby, File.join(root, "exe/rperf"), "record", "-m", "wall", "-f", "5000", "-o", "boot.pb.gz"]
  exec(*command, RbConfig.ruby, __FILE__)
end

require "json"
require "net/http"
autoload :OptionParser, "optparse"
OptionParser.new

# As Rails has it.
module Rails
  module Initializable
    # It calls its block.
    class Initializer
      def initialize(&block) = @block = block
      def run = instance_exec(&@block)
    end
  end
end

# Two initializers with one name.
class Railtie
  LONG = Rails::Initializable::Initializer.new do
    sleep(0.03)
  end
  SHORT = Rails::Initializable::Initializer.new do
    sleep(0.01)
  end
end
[Railtie::LONG, Railtie::SHORT].each(&:run)
