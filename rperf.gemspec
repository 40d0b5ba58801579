# frozen_string_literal: true

require_relative "lib/rperf/version"

Gem::Specification.new do |spec|
  spec.name = "rperf"
  spec.version = Rperf::VERSION
  spec.summary = "A sampling profiler for CRuby"
  spec.description = "Shows where a Ruby program's time goes: CPU, waiting for the GVL, I/O, garbage collection. " \
                     "The engine and the tools are in Rust; profiles are in pprof's format."
  spec.authors = ["The rperf authors"]
  spec.license = "MIT"

  spec.required_ruby_version = ">= 3.4"
  spec.metadata["rubygems_mfa_required"] = "true"

  # Not from git: a gem can be built from an unpacked archive too.
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "lib/rperf/viewer/*", "exe/*", "ext/**/*.{rb,rs,toml}", "crates/**/*.{rs,toml}", "docs/**/*.md",
        "Cargo.{toml,lock}", "README.md", "CHANGELOG.md", "LICENSE"].select { |path| File.file?(path) }
  end
  spec.bindir = "exe"
  spec.executables = ["rperf"]
  spec.extensions = ["ext/rperf/extconf.rb"]

  # Builds the extension.
  spec.add_dependency "rb_sys", "~> 0.9"
end
