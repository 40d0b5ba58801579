# frozen_string_literal: true

require "rb_sys/extensiontask"

GEMSPEC = Gem::Specification.load(File.expand_path("../rperf.gemspec", __dir__))

# `rake compile` builds into lib/rperf/ as bin/ does: in release mode, with line tables and what specs ask for.
ENV["RB_SYS_CARGO_PROFILE"] ||= "checkout"
ENV["RB_SYS_CARGO_FEATURES"] ||= "measure"
RbSys::ExtensionTask.new("rperf", GEMSPEC) do |ext|
  ext.lib_dir = "lib/rperf"
end
