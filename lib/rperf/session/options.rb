# frozen_string_literal: true

require_relative "output"

module Rperf
  # The checked arguments of {Rperf.start}. Everything that could make a profile
  # get lost at its end is refused here, at its start.
  class Options
    FREQUENCIES = 1..10_000
    MODES = %i[cpu wall].freeze
    FORMATS = %i[pprof collapsed text markdown json html].freeze
    CAPTURES = %i[tick safepoint].freeze
    private_constant :FREQUENCIES

    attr_reader :output, :verbose, :format, :inherit

    def initialize(frequency:, mode:, output:, verbose:, format:, signal:, aggregate:, lines:, capture:,
                   defer: false, inherit: false)
      @frequency = self.class.frequency(frequency)
      @mode = self.class.one_of(:mode, mode, MODES)
      @output = nil.equal?(output) ? nil : self.class.writable_path(:output, output)
      @verbose = self.class.one_of(:verbose, verbose, [true, false])
      @format = self.class.format(format)
      @signal = self.class.signal(signal)
      @aggregate = self.class.one_of(:aggregate, aggregate, [true, false])
      @lines = self.class.one_of(:lines, lines, [true, false, nil])
      @capture = self.class.capture(capture, signal)
      @defer = self.class.one_of(:defer, defer, [true, false])
      @inherit = self.class.inherit(inherit, aggregate)
    end

    # @return [Hash{Symbol => Object}] what Native.start takes
    def sampling
      { frequency: @frequency, mode: @mode, signal: @signal, aggregate: @aggregate, lines: @lines != false,
        capture: @capture, defer: @defer }
    end

    # @return [Boolean] whether equal samples are added up
    def aggregate? = @aggregate

    # @return [Hash{String => String}] the same for Rubies that are started: settings of a session
    def variables
      switches = { "LINES" => @lines, "AGGREGATE" => @aggregate }.compact
      switches = switches.transform_values { |on| on ? "1" : "0" }
      values = { "FREQUENCY" => @frequency, "MODE" => @mode, "SIGNAL" => @signal, "CAPTURE" => @capture }.compact
      values.transform_values(&:to_s).merge(switches)
    end

    # @return [Boolean] whether a text report has a table of lines
    def show_lines? = @lines == true

    class << self
      # `value.is_a?(type)`, also for an object without the methods of Object.
      def a?(value, type)
        case value
        when type then true
        else false
        end
      end

      def frequency(value)
        return value if a?(value, Integer) && FREQUENCIES.cover?(value)

        reject(:frequency, value, "an Integer from #{FREQUENCIES.min} to #{FREQUENCIES.max} (samples per second)")
      end

      def format(value)
        nil.equal?(value) ? nil : one_of(:format, value, FORMATS, "or nil (by the file's extension)")
      end

      def one_of(name, value, allowed, other = nil)
        return value if allowed.any? { |item| item.equal?(value) }

        reject(name, value, [allowed.map(&:inspect).join(" or "), other].compact.join(" "))
      end

      def signal(value)
        return value if [nil, false].any? { |item| item.equal?(value) }

        range = Native.timer_signals
        unless a?(value, Integer)
          reject(:signal, value, "nil (the default signal), false (no signal) or the number of a real-time signal")
        end
        reject(:signal, value, "nil or false: this system has no timer signals") unless range
        return value if range.cover?(value)

        reject(:signal, value, "from #{range.min} to #{range.max}: the other signals have a meaning to programs")
      end

      # The timer's signal is what is passed on to the thread that runs. `signal` has been checked.
      def capture(value, signal)
        return if nil.equal?(value)

        one_of(:capture, value, CAPTURES, "or nil (:tick where a signal may be used)")
        if value == :tick
          reject(:capture, value, ":safepoint or nil with signal: false") if signal == false
          reject(:capture, value, ":safepoint or nil: this system has no timer signals") unless Native.timer_signals
        end
        value
      end

      # Processes leave sums to be merged. `aggregate` has been checked.
      def inherit(value, aggregate)
        one_of(:inherit, value, [false, :fork, true])
        reject(:inherit, value, "false with aggregate: false") if value && !aggregate
        value
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

      def writable_path(name, value)
        path = path(name, value)
        descriptor = Output.descriptor(path)
        if descriptor
          reject(name, value, "open for writing") unless open_for_writing?(descriptor)
          return path
        end
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

      def open_for_writing?(descriptor)
        IO.for_fd(descriptor, "w", autoclose: false)
        true
      rescue SystemCallError, ArgumentError, RangeError # not open; read-only; one of Ruby's own; no such number
        false
      end

      def reject(name, value, allowed)
        raise ArgumentError, "#{name}: must be #{allowed}, not #{shown(value)}"
      end
    end
  end
  private_constant :Options
end
