# frozen_string_literal: true

require "mkmf"
require "rb_sys/mkmf"

# RubyGems shows this with --verbose; without, it says of its own that this takes a while.
puts "rperf: building the extension, which is written in Rust: this takes one to five minutes"

create_rust_makefile("rperf/rperf") do |config|
  # A profiler that is built without optimisation measures itself.
  config.profile = ENV.fetch("RB_SYS_CARGO_PROFILE", "release").to_sym
  # Only a checkout has what specs and benchmarks ask for.
  config.features = ENV.fetch("RB_SYS_CARGO_FEATURES", "").split(",")
end
