# frozen_string_literal: true

module Bench
  # Loads a gem that may not be there. Those that Bundler has are seen through Bundler only.
  def self.load_gem(library)
    require library
  rescue LoadError
    require "bundler/setup"
    require library
  end
end
