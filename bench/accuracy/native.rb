# frozen_string_literal: true

require_relative "../support/c_extension"

module Accuracy
  # The C part: bench/native.
  module Native
    EXTENSION = Bench::CExtension.new("bench_native", File.expand_path("../native", __dir__))
    private_constant :EXTENSION

    # Builds it if it is not there yet.
    # @return [String, nil] why it can't be had
    def self.missing = EXTENSION.missing

    def self.load = require(EXTENSION.library)
  end
end
