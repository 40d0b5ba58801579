# frozen_string_literal: true

module Rperf
  # The version of the gem; Cargo.toml says the same.
  VERSION = "0.1.0"
end
