# frozen_string_literal: true

# Loaded first of all, and by what loads it only.
module Rperf
  # The original rperf, in C: another project, whose module is Rperf, too. A program can't have both. Any Ruby may load
  # this file: no syntax newer than Ruby 2.5.
  module Original
    # Whether Rperf::VERSION is ours: a program may have asked for it alone.
    IS_OURS = defined?(Rperf::Names) || $LOADED_FEATURES.include?(File.join(__dir__, "version.rb"))
    # The version of the module that was here before ours.
    LOADED = (Rperf::VERSION if defined?(Rperf::VERSION) && !IS_OURS)
    # Only this project has it.
    OWN_FILE = "rperf/original.rb"

    class << self
      # Why a program can't have us, or nil.
      # @param unasked whether only the environment asks for us: what the program loads later finds us instead
      def obstacle(unasked)
        spec = gem if LOADED || !unasked
        return about("the gem #{spec.name} #{spec.version} (#{spec.full_gem_path})") if spec

        about("the Rperf #{LOADED} that the program has loaded") if LOADED
      end

      private

      def about(what)
        "#{what} is the original rperf, another project with the same module: a program can have one of the two"
      end

      # Its gem, if RubyGems has made it a part of the program.
      def gem
        return unless defined?(::Gem) && ::Gem.respond_to?(:loaded_specs)

        spec = ::Gem.loaded_specs[Names::ORIGINAL]
        spec unless spec.nil? || spec.full_require_paths.any? { |path| File.exist?(File.join(path, OWN_FILE)) }
      end
    end
  end
  private_constant :Original

  require_relative "names"
end
