# frozen_string_literal: true

require_relative "c_extension"

module Bench
  # The C part: bench/native.
  module Native
    EXTENSION = CExtension.new("bench_native", File.expand_path("../native", __dir__))
    private_constant :EXTENSION

    # Builds it if it is not there yet.
    # @return [String, nil] why it can't be had
    def self.missing = EXTENSION.missing

    def self.load = require(library)

    # @return [String] what to require
    def self.library = EXTENSION.library
  end
end
