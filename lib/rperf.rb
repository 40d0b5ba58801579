# frozen_string_literal: true

# The entry of the gem. `rperf record` and `rperf stat` make every Ruby of the
# command load this file first, whatever its version: it and the files required
# before the version check keep to syntax that Ruby 2.5 can read.
#
# The floors of lib/rperf, from the lowest up. A file names constants of its own floor and of lower ones only, and no
# files name each other in a circle (`bin/test lint` checks it):
#
#   1 names.rb original.rb version.rb errors.rb message.rb stderr.rb argument.rb builtin.rb deferred.rb inert.rb
#     wrapped.rb
#   2 processes/ web/ ops/ ops.rb
#   3 session/ live/
#   4 hooks/
#   5 api/ api.rb autostart.rb
#   6 ../rperf.rb
#   7 middleware/ rack/ viewer/ suite/ middleware.rb rack.rb sidekiq.rb active_job.rb viewer.rb pprof_endpoint.rb
#     suite.rb rspec.rb minitest.rb cli.rb launched.rb

# Two copies of rperf in one process would be two profilers of it: the one that has come first stays.
if defined?(Rperf) && Rperf.respond_to?(:instead_of, true)
  Rperf.send(:instead_of, __FILE__)
  return
end

require_relative "rperf/original"

module Rperf
  # Why this Ruby can't be profiled, or nil if it can.
  def self.unsupported_ruby
    if RUBY_ENGINE != "ruby"
      "rperf works with CRuby only, not with #{RUBY_ENGINE}"
    elsif (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 4]) < 0
      "Ruby #{RUBY_VERSION} is too old: rperf needs Ruby >= 3.4"
    end
  end
  private_class_method :unsupported_ruby

  # Loads the rest. If the environment asks for a profile, a Ruby that can't be
  # profiled gets one line and runs on, and one that can is profiled to its end.
  def self.load_gem
    require_relative "rperf/processes/launch"
    if Launch.wanted?(ENV)
      launch = Launch.take(ENV)
      # A program that requires "rperf" gets this one, not another.
      $LOAD_PATH.unshift(__dir__) unless $LOAD_PATH.first == __dir__
    else
      Launch.refuse_value(ENV)
    end
    listens = ENV.key?("#{Launch::PREFIX}#{Launch::LISTEN}")
    original = Original.obstacle(launch || listens)
    return refuse(original, launch) if original

    require_relative "rperf/version"
    require_relative "rperf/stderr"
    load_or_stand_in(launch, listens)
  end
  private_class_method :load_gem

  def self.load_or_stand_in(launch, listens)
    obstacle = unsupported_ruby || launch&.obstacle || load_parts(launch)
    if obstacle
      refuse(obstacle, launch)
      require_relative "rperf/inert"
      self.obstacle = obstacle
    elsif launch
      require_relative "rperf/autostart"
      Autostart.begin(launch)
    elsif listens
      listen_as_asked(->(key) { ENV.fetch("#{Launch::PREFIX}#{key}", nil) })
    end
  end
  private_class_method :load_or_stand_in

  def self.refuse(obstacle, launch)
    raise LoadError, "rperf: #{obstacle}" unless launch

    launch.refuse(obstacle)
  end
  private_class_method :refuse

  # Returns why the parts can't be loaded, for a program that must run anyway.
  def self.load_parts(launch)
    require_relative "rperf/errors"
    require_relative extension
    obstacle = another_user(launch)
    return obstacle if obstacle

    Native.own_files("#{__dir__}/rperf")
    require_relative "rperf/api"
    nil
  rescue LoadError => e
    raise unless launch

    "its extension can't be loaded (#{e.message.lines.first.to_s.chomp}); " \
      "'ruby -S #{Names::COMMAND}' with that Ruby, once it has the gem, profiles it"
  end
  private_class_method :load_parts

  # Returns why the environment isn't heeded: who has set it may have fewer rights than the program.
  def self.another_user(launch)
    "the program's file makes it run as another user, so RPERF_* isn't heeded" if launch && Native.of_another_user?
  end
  private_class_method :another_user

  # The file that was built for this version of Ruby. A gem that has several has a directory for each; what was built at
  # its installation is for one version, and refuses others.
  def self.extension
    require "rbconfig"
    version = RUBY_VERSION[/\A\d+\.\d+/]
    names = ["rperf/#{version}/rperf", "rperf/rperf"]
    names.find { |name| File.exist?("#{__dir__}/#{name}.#{RbConfig::CONFIG["DLEXT"]}") } ||
      raise(LoadError, "there is none for Ruby #{version}: installing the gem with that Ruby builds it")
  end
  private_class_method :extension

  load_gem

  # Loads this copy's file in place of that of another copy, and says so if that is another version. Returns whether it
  # was another's.
  def self.instead_of(file)
    library = File.dirname(File.realpath(file))
    library = File.dirname(library) unless File.basename(file) == "#{Names::ENTRY}.rb"
    return false if library == __dir__

    versions = [library, __dir__].map { |directory| version_in(directory) }
    if versions.all? && versions.uniq.size == 2
      Stderr.write("rperf: #{file} isn't loaded, because the program has another version, in #{__dir__}\n")
    end
    require "#{__dir__}/rperf/#{File.basename(file)}" unless File.basename(file) == "#{Names::ENTRY}.rb"
    true
  rescue LoadError
    false # This copy's files have been removed since.
  end
  private_class_method :instead_of

  def self.version_in(library)
    File.binread("#{library}/rperf/version.rb")
  rescue SystemCallError
    nil # It isn't known.
  end
  private_class_method :version_in
end
