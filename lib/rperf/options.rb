# frozen_string_literal: true

require_relative "output"

module Rperf
  # The checked arguments of {Rperf.start}. Everything that could make a profile
  # get lost at its end is refused here, at its start.
  class Options
    FREQUENCIES = 1..10_000
    MODES = %i[cpu wall].freeze
    FORMATS = %i[pprof collapsed text].freeze
    private_constant :FREQUENCIES, :MODES, :FORMATS

    attr_reader :frequency, :mode, :output, :verbose, :format, :signal, :aggregate

    def initialize(frequency:, mode:, output:, verbose:, format:, signal:, aggregate:)
      @frequency = self.class.frequency(frequency)
      @mode = self.class.one_of(:mode, mode, MODES)
      @output = output.nil? ? nil : self.class.writable_path(:output, output)
      @verbose = self.class.one_of(:verbose, verbose, [true, false])
      @format = self.class.format(format)
      @signal = self.class.signal(signal)
      @aggregate = self.class.one_of(:aggregate, aggregate, [true, false])
    end

    class << self
      def frequency(value)
        return value if value.is_a?(Integer) && FREQUENCIES.cover?(value)

        reject(:frequency, value, "an Integer from #{FREQUENCIES.min} to #{FREQUENCIES.max} (samples per second)")
      end

      def format(value)
        value.nil? ? nil : one_of(:format, value, FORMATS, "or nil (by the file's extension)")
      end

      def one_of(name, value, allowed, other = nil)
        return value if allowed.any? { |item| item.equal?(value) }

        reject(name, value, [allowed.map(&:inspect).join(" or "), other].compact.join(" "))
      end

      def signal(value)
        return value if value.nil? || value == false

        range = Native.timer_signals
        unless value.is_a?(Integer)
          reject(:signal, value, "nil (the default signal), false (no signal) or the number of a real-time signal")
        end
        reject(:signal, value, "nil or false: this system has no timer signals") unless range
        return value if range.cover?(value)

        reject(:signal, value, "from #{range.min} to #{range.max}: the other signals have a meaning to programs")
      end

      # @return [String] the path, absolute, so that a change of folder doesn't matter
      def path(name, value)
        text = value.respond_to?(:to_path) ? value.to_path : value
        unless text.is_a?(String) && !text.empty? && !text.include?("\0")
          reject(name, value, "a path (a String or a Pathname)")
        end
        # Not File.expand_path, to which a leading ~ is more than a name.
        File.absolute_path(text)
      end

      def writable_path(name, value)
        path = path(name, value)
        folder = File.dirname(path)
        if File.directory?(path)
          reject(name, value, "a file, and that is a folder")
        elsif File.exist?(path)
          reject(name, value, "a file that can be written") unless File.writable?(path)
          return path unless File.file?(path)
        end
        reject(name, value, "in a folder that exists") unless File.directory?(folder)
        reject(name, value, "in a folder that can be written to") unless File.writable?(folder)
        path
      end

      # @return [String] any object as a short piece of a message
      def shown(value)
        text = value.inspect
        text.size > 80 ? "#{text[0, 77]}..." : text
      end

      private

      def reject(name, value, allowed)
        raise ArgumentError, "#{name}: must be #{allowed}, not #{shown(value)}"
      end
    end
  end
  private_constant :Options
end
