# frozen_string_literal: true

require "rb_sys/extensiontask"

GEMSPEC = Gem::Specification.load(File.expand_path("../rperf.gemspec", __dir__))

# `rake compile` builds with Cargo's release profile into lib/rperf/.
RbSys::ExtensionTask.new("rperf", GEMSPEC) do |ext|
  ext.lib_dir = "lib/rperf"
end
