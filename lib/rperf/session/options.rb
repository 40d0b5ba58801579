# frozen_string_literal: true

require_relative "output"

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
      new(NativeSettings.from_keywords(keywords, method(:shown)))
    end

    # @param settings [NativeSettings]
    def initialize(settings)
      @settings = settings
    end

    # @return [NativeSettings] what Native.start takes
    def sampling = @settings

    # @return [Object] the value of a setting, as {Rperf.start} takes it
    def [](name) = @settings[name]

    # @return [String, nil] the path of the file to write, absolute, so that a change of folder doesn't matter
    def output = self[:output]

    def verbose = self[:verbose]
    def format = self[:format]
    def inherit = self[:inherit]

    # @return [Boolean] whether equal samples are added up
    def aggregate? = self[:aggregate]

    # @return [Boolean] whether a text report has a table of lines
    def show_lines? = self[:lines] == true

    class << self
      # `value.is_a?(type)`, also for an object without the methods of Object.
      def a?(value, type)
        case value
        when type then true
        else false
        end
      end

      def format(value)
        NativeSettings.check(:format, value, method(:shown))
        value
      end

      def one_of(name, value, allowed)
        return value if allowed.any? { |item| item.equal?(value) }

        reject(name, value, allowed.map(&:inspect).join(" or "))
      end

      # @return [String] the path, absolute, so that a change of folder doesn't matter
      def path(name, value)
        text = path_text(value)
        reject(name, value, "a path (a String or a Pathname)") if text.nil? || text.empty? || text.include?("\0")
        # Not File.expand_path, to which a leading ~ is more than a name.
        File.absolute_path(text)
      rescue Errno::ENOENT
        reject(name, value, "an absolute path, as the current folder is gone")
      end

      # @return [String] any object as a short piece of a message
      def shown(value)
        text = value.inspect.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
        text.size > 80 ? "#{text[0, 77]}..." : text
      rescue StandardError
        # No inspect, or one that fails; this works for a BasicObject too.
        "an object of #{Kernel.instance_method(:class).bind_call(value)}"
      end

      private

      def path_text(value)
        text = a?(value, Object) && value.respond_to?(:to_path) ? value.to_path : value
        text if a?(text, String)
      end

      def reject(name, value, allowed)
        raise ArgumentError, "#{name}: must be #{allowed}, not #{shown(value)}"
      end
    end
  end
  private_constant :Options
end
