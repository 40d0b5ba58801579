# frozen_string_literal: true

require_relative "../argument"

module Rperf
  # Settings that have been checked: everything that could make a profile get lost at its end is refused at its start.
  # Which there are, and what they may be, says the table in crates/rperf-session/src/settings/table.rs.
  class Options
    # @param keywords [Hash{Symbol => Object}] those of {Rperf.start}
    # @raise [ArgumentError] for one that isn't allowed
    def self.from_keywords(keywords)
      output = keywords[:output]
      path = path_text(output)
      keywords = keywords.merge(output: path) unless path.nil? || path.equal?(output)
      new(NativeSettings.from_keywords(keywords, Argument.method(:shown)))
    end

    # @param settings [NativeSettings]
    def initialize(settings)
      @settings = settings
    end

    # @return [NativeSettings] what Native.start takes
    def sampling = @settings

    # @return [Object] the value of a setting, as {Rperf.start} takes it
    def [](name) = @settings[name]

    # @return [String, nil] the path of the file to write, absolute, so that a change of directory doesn't matter
    def output = self[:output]

    def verbose = self[:verbose]
    def format = self[:format]
    def inherit = self[:inherit]

    # @return [Boolean] whether equal samples are added up
    def aggregate? = self[:aggregate]

    # @return [Boolean] whether ops are measured
    def ops? = @settings.ops?

    # @return [Boolean] whether a text report has a table of lines
    def show_lines? = self[:lines] == true

    class << self
      def format(value)
        NativeSettings.check(:format, value, Argument.method(:shown))
        value
      end

      # @return [String] the path, absolute, so that a change of directory doesn't matter
      def path(name, value)
        text = path_text(value)
        if text.nil? || text.empty? || text.include?("\0")
          Argument.reject(name, value, "a path (a String or a Pathname)")
        end
        # Not File.expand_path, to which a leading ~ is more than a name.
        File.absolute_path(text)
      rescue Errno::ENOENT
        Argument.reject(name, value, "an absolute path, as the current directory is gone")
      end

      private

      def path_text(value)
        text = Argument.a?(value, Object) && value.respond_to?(:to_path) ? value.to_path : value
        text if Argument.a?(text, String)
      end
    end
  end
  private_constant :Options
end
