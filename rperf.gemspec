# frozen_string_literal: true

# Into a module of its own: Bundler reads this in programs that may have loaded another copy.
about = Module.new
%w[names version].each { |file| Kernel.load(File.join(__dir__, "lib/rperf/#{file}.rb"), about) }
names = about::Rperf::Names

Gem::Specification.new do |spec|
  spec.name = names::GEM
  spec.version = about::Rperf::VERSION
  spec.summary = "A sampling profiler for CRuby"
  spec.description = "Shows where a Ruby program's time goes: CPU, waiting for the GVL, I/O, garbage collection. " \
                     "The engine and the tools are in Rust; profiles are in pprof's format."
  spec.authors = ["The rperf authors"]
  spec.license = "MIT"

  spec.required_ruby_version = ">= 3.4"
  spec.metadata["rubygems_mfa_required"] = "true"

  if names::GEM == names::ORIGINAL
    spec.post_install_message = "This rperf is not the one of RubyGems, which is another project, in C. Where both " \
                                "are installed, the higher version is 'rperf', and require \"rperf\": keep one."
  end

  # Not from git: a gem can be built from an unpacked archive too.
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "lib/rperf/viewer/*", "exe/#{names::COMMAND}", "ext/**/*.{rb,rs,toml}",
        "crates/**/*.{rs,toml}", "docs/**/*.md", "Cargo.{toml,lock}", "README.md", "CHANGELOG.md",
        "LICENSE"].select { |path| File.file?(path) }
  end
  spec.bindir = "exe"
  spec.executables = [names::COMMAND]
  spec.extensions = ["ext/rperf/extconf.rb"]

  # Builds the extension.
  spec.add_dependency "rb_sys", "~> 0.9"
end
