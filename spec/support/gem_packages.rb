# frozen_string_literal: true

require "fileutils"

# Gems made from this checkout and of stand-ins, in a GEM_HOME of the example's own.
module GemPackages
  LIBRARY = File.join(Commands::ROOT, "lib")

  # The original: another project with the same module, as far as a program that loads it can tell.
  ORIGINAL = {
    "lib/rperf.rb" => <<~RUBY,
      require_relative "rperf/version"
      module Rperf
        def self.start(**) = puts("the original starts")
        def self.stop = puts("the original stops")
      end
    RUBY
    "lib/rperf/version.rb" => "module Rperf\n  VERSION = '0.9.0'\nend\n",
    "lib/rperf/rack.rb" => "require_relative '../rperf'\nclass Rperf::RackMiddleware\nend\n",
    "exe/rperf" => "#!/usr/bin/env ruby\nrequire 'rperf'\nputs \"the original \#{Rperf::VERSION}\"\n",
    "rperf.gemspec" => <<~RUBY
      Gem::Specification.new("rperf", "0.9.0") do |spec|
        spec.summary = "A stand-in"
        spec.authors = ["nobody"]
        spec.files = Dir["{lib,exe}/**/*"]
        spec.bindir = "exe"
        spec.executables = ["rperf"]
      end
    RUBY
  }.freeze

  # Builds the gem of a directory as it is, with what its extension's build has left there.
  BUILD = <<~'RUBY'
    require "rubygems/package"
    spec = Gem::Specification.load(Dir["*.gemspec"].first)
    spec.extensions = []
    spec.dependencies.clear
    spec.files |= Dir["lib/**/*.{so,bundle}", "lib/rperf/bin/*"]
    print File.expand_path(Gem::Package.build(spec, true))
  RUBY

  def gem_home = path_to("gems")

  # As for a user who has these gems only.
  def gem_environment = { "GEM_HOME" => gem_home, "GEM_PATH" => gem_home }

  # @return [String] the path of the original's gem
  def original_gem
    ORIGINAL.each do |name, content|
      path = path_to("original/#{name}")
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, content)
    end
    File.chmod(0o755, path_to("original/exe/rperf"))
    build_gem("original")
  end

  # @param name [String, nil] a name to give to the gem, its command and its entry, as CONTRIBUTING.md says
  # @return [String] the path of our gem, without sources
  def own_gem(name = nil)
    FileUtils.mkdir_p(path_to("own"))
    %w[lib exe rperf.gemspec README.md].each { |part| FileUtils.cp_r(File.join(Commands::ROOT, part), path_to("own")) }
    # The symbols would take most of the time.
    native = Dir[path_to("own/lib/rperf/**/*.so"), path_to("own/lib/rperf/bin/*")]
    # Of the programs' CPU, which may be an emulated one.
    strip = RbConfig::CONFIG["STRIP"].split.first
    system(strip, *native, exception: true) if RUBY_PLATFORM.include?("linux")
    rename_own(name) if name
    build_gem("own")
  end

  # @return [Commands::Outcome]
  def install_gem(path)
    run(ruby, "-S", "gem", "install", "--local", "--no-document", path, env: gem_environment).tap do |outcome|
      raise outcome.stdout + outcome.stderr unless outcome.status.success?
    end
  end

  private

  def rename_own(name)
    path = path_to("own/lib/rperf/names.rb")
    File.write(path, File.read(path).gsub(/(GEM|COMMAND|ENTRY) = ".*"/, "\\1 = \"#{name}\""))
    File.write(path_to("own/lib/#{name}.rb"), "require_relative \"rperf\"\n")
    FileUtils.mv(path_to("own/exe/rperf"), path_to("own/exe/#{name}"))
  end

  def build_gem(directory)
    outcome = run(ruby, "-C", directory, "-e", BUILD, env: { "SOURCE_DATE_EPOCH" => "0" })
    raise outcome.stderr unless outcome.status.success?

    outcome.stdout[/\S.*\.gem\z/]
  end
end
