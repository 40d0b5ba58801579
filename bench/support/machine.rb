# frozen_string_literal: true

require "etc"

module Bench
  # What a figure is worth nothing without.
  module Machine
    def self.describe
      system = Etc.uname
      "#{RUBY_DESCRIPTION}; #{system[:sysname]} #{system[:release]}, #{Etc.nprocessors} CPUs; " \
        "#{Time.now.strftime("%Y-%m-%d")}"
    end
  end
end
