# frozen_string_literal: true

# Packs a gem into pkg/:
#
#   pack.rb PLATFORM [DIRECTORY VERSION...]
#
# For `ruby` it is the source. For another platform DIRECTORY has the native files: lib/VERSION/rperf.so for each
# VERSION of Ruby, lib/bin/rperf-command, LICENSES-THIRD-PARTY.md and LICENSES-RUST.html. SOURCE_DATE_EPOCH is the time
# that all files get.
require "fileutils"
require "rubygems/package"

ROOT = File.expand_path("../../..", __dir__)
# What is only there to build the native files.
SOURCES = %r{\A(ext/|crates/|Cargo\.)}
LICENSES = %w[LICENSES-THIRD-PARTY.md LICENSES-RUST.html].freeze

# The specification for a gem whose native files are built: none of what builds them is in it.
def of_platform(spec, platform, versions)
  # Older ones don't tell -gnu from -musl.
  spec.required_rubygems_version = ">= 3.3.22"
  spec.platform = Gem::Platform.new(platform)
  spec.extensions = []
  spec.dependencies.reject! { |dependency| dependency.name == "rb_sys" }
  major, minor = versions.last.split(".").map { Integer(it) }
  # A Ruby that it has no library for gets the gem with the source.
  spec.required_ruby_version = [">= #{versions.first}", "< #{major}.#{minor + 1}.dev"]
  spec.files = spec.files.grep_v(SOURCES) + native_files(versions)
end

def native_files(versions)
  versions.map { |version| "lib/rperf/#{version}/rperf.so" } + ["lib/rperf/bin/rperf-command", *LICENSES]
end

# Where a file of the gem is now.
def source_of(file, built)
  case file
  when *LICENSES then "#{built}/#{file}"
  when %r{\Alib/rperf/(.+\.so|bin/.+)\z} then "#{built}/lib/#{Regexp.last_match(1)}"
  else "#{ROOT}/#{file}"
  end
end

# Copies the gem's files, because their modes go into it, and they depend on the umask of a checkout.
def stage(spec, built, directory)
  FileUtils.rm_rf(directory)
  spec.files.each do |file|
    from = source_of(file, built)
    to = "#{directory}/#{file}"
    FileUtils.mkdir_p(File.dirname(to))
    FileUtils.cp(from, to)
    File.chmod(File.executable?(from) ? 0o755 : 0o644, to)
  end
end

platform, built, *versions = ARGV
spec = Dir.chdir(ROOT) { Gem::Specification.load("rperf.gemspec") }
of_platform(spec, platform, versions) unless platform == "ruby"
spec.files = spec.files.sort
staged = "#{ROOT}/tmp/package/#{spec.full_name}"
stage(spec, built, staged)
Dir.chdir(staged) { Gem::Package.build(spec) }
FileUtils.mkdir_p("#{ROOT}/pkg")
FileUtils.mv("#{staged}/#{spec.file_name}", "#{ROOT}/pkg/#{spec.file_name}")
FileUtils.rm_rf(staged)
