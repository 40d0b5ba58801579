# frozen_string_literal: true

require_relative "places"

module Specs
  # Examples in which a program crashed or didn't end: spec/support/commands.rb notes them. One that does so once in a
  # hundred times has a fault of ours, not of the machine.
  module Crashes
    PATH = File.join(DIRECTORY, "crashes")

    # @return [Array<String>] their ids
    def self.ids = File.exist?(PATH) ? File.readlines(PATH, chomp: true) : []
  end
end
