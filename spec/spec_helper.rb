# frozen_string_literal: true

# Specs read what is UTF-8, also where no locale says so.
Encoding.default_external = Encoding::UTF_8

require "rperf"
Dir[File.join(__dir__, "support", "*.rb")].each { |file| require file }

# Programs that specs start would inherit a SIGHUP that is ignored, as by nohup.
trap("HUP", "DEFAULT")

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
  config.raise_errors_for_deprecations!
  config.include Apps
  config.include Commands
  config.include GemPackages
  config.include Labelled
  config.include Profiles

  # What can differ from one Ruby to the next is `vm: true`, and runs on all of them: see bin/test.
  config.define_derived_metadata { |metadata| metadata[:vm] = false unless metadata.key?(:vm) }

  # What musl hasn't, or what the tools of a system with glibc can't do with it.
  config.filter_run_excluding(musl: false) if RUBY_PLATFORM.include?("musl")

  # No example may leave a session to the next one.
  config.after { Rperf.stop if Rperf.running? }
  # Nor a thread, such as Timeout's, which Net::HTTP uses too: a new one is made when it is needed.
  config.after { (Thread.list - [Thread.current]).each { |thread| thread.kill.join } }
end
