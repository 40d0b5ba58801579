# frozen_string_literal: true

# Puts the shop into a directory of its own, with its gem beside it, as a build does:
#
#   ruby examples/ci/build.rb build-101 1.0.0

require "fileutils"

directory, version = ARGV
shade = File.join(__dir__, "gems", "shade-#{version}")
abort "usage: build.rb DIRECTORY VERSION, where VERSION is 1.0.0, 1.1.0 or 1.2.0" unless
  directory && version && File.directory?(shade)

gems = File.join(directory, "vendor", "bundle", "ruby", RbConfig::CONFIG["ruby_version"], "gems")
FileUtils.mkdir_p(gems)
FileUtils.cp_r(File.join(__dir__, "shop", "."), directory)
FileUtils.cp_r(shade, gems)
