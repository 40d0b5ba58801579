# frozen_string_literal: true

module Rperf
  # Checks the arguments of questions to profiles, and converts them to the form that the native half takes. They are
  # named as the options of the command.
  module Questions
    # With the names that pprof has for them.
    SORTS = { "self" => %i[self flat], "total" => %i[total cum] }.freeze
    GROUPS = %w[function class file dir gem gem:c op thread state].freeze
    SCALINGS = %w[none total duration requests].freeze
    TAGS = "a String as 'KEY=REGEX', or an Array of them"
    KEYS = "the key of a label, or an Array of keys"
    private_constant :SORTS, :GROUPS, :SCALINGS, :TAGS, :KEYS

    class << self
      # The filters, which choose a part of a profile.
      #
      # @return [Hash{Symbol => String, Array<String>, Integer}] without those that are nil
      # @raise [ArgumentError] for one that isn't allowed
      def filters(focus: nil, ignore: nil, hide: nil, hide_ops: nil, show: nil, show_from: nil, tagfocus: nil,
                  tagignore: nil, tagroot: nil, tagleaf: nil, thread: nil, pid: nil, value: nil, idle: nil)
        patterns = { focus:, ignore:, hide:, show:, show_from: }.compact.to_h { |key, it| [key, pattern(key, it)] }
        tags = { tagfocus:, tagignore: }.compact.to_h { |key, it| [key, texts(key, it, TAGS)] }
        keys = { tagroot:, tagleaf: }.compact.to_h { |key, it| [key, texts(key, it, KEYS)] }
        switches = { hide_ops:, idle: }.compact.to_h { |key, it| [key, Argument.one_of(key, it, [true, false])] }
        others = { thread: thread(thread), pid: pid(pid), value: value(value) }.compact
        { **patterns, **tags, **keys, **switches, **others }
      end

      def sort(value)
        sort, = SORTS.find { |_, names| names.any? { |name| name.equal?(value) } }
        sort || Argument.reject(:sort, value, ":self or :total")
      end

      def limit(value)
        return value if nil.equal?(value) || number?(value)

        Argument.reject(:limit, value, "the number of rows, or nil for all")
      end

      def least(value)
        return value.to_f if Argument.a?(value, Numeric) && value.real? && (0..100).cover?(value)

        Argument.reject(:least, value, "a percentage from 0 to 100")
      end

      # What the rows are.
      def group(value) = name_or_label(:by, value, GROUPS)

      # What runs are scaled by.
      def scaling(value) = name_or_label(:normalize, value, SCALINGS)

      # What is compared of tests; nil: what the native half compares unless it is told.
      def test_value(value)
        names = NativeProfile.test_values
        text = text(:value, value, one_of(names)) unless nil.equal?(value)
        return text if text.nil? || names.include?(text)

        Argument.reject(:value, value, one_of(names))
      end

      # A regular expression as the native half reads it. It knows no lookaround, and none of Ruby's own escapes.
      def pattern(name, value)
        case value
        when Regexp then regexp(value)
        else text(name, value, "a String or a Regexp")
        end
      end

      private

      # @return [String] in UTF-8
      def text(name, value, allowed)
        text = case value
               when String then value.encode(Encoding::UTF_8)
               when Symbol then value.name.encode(Encoding::UTF_8)
               end
        return text if text&.valid_encoding?

        Argument.reject(name, value, allowed)
      rescue EncodingError
        Argument.reject(name, value, "text")
      end

      def name_or_label(name, value, names)
        allowed = "#{one_of(names)} or \"label:KEY\""
        text = text(name, value, allowed)
        return text if names.include?(text) || text.match?(/\Alabel:./m)

        Argument.reject(name, value, allowed)
      end

      def one_of(names) = names.map { |it| ":#{it}" }.join(", ")

      def number?(value) = Argument.a?(value, Integer) && (0..0xffff_ffff).cover?(value)

      # What Ruby calls m is s elsewhere.
      def regexp(value)
        flags = { Regexp::IGNORECASE => "i", Regexp::MULTILINE => "s", Regexp::EXTENDED => "x" }
        flags = flags.filter_map { |option, flag| flag if value.options.anybits?(option) }.join
        # A comment may be the last thing in it.
        ending = flags.include?("x") ? "\n" : ""
        "(?#{flags}:#{text(:pattern, value.source, "text")}#{ending})"
      end

      # @return [Array<String>] those of an Array, or the only one
      def texts(name, value, allowed)
        values = Argument.a?(value, Array) ? value : [value]
        values.map { |it| text(name, it, allowed) }
      end

      def thread(value)
        case value
        when nil, Integer then value&.to_s
        else pattern(:thread, value)
        end
      end

      def pid(value)
        return value if nil.equal?(value) || number?(value)

        Argument.reject(:pid, value, "the number of a process")
      end

      def value(value)
        case value
        when nil, Integer then value&.to_s
        else text(:value, value, "the name or number of the values")
        end
      end
    end
  end
  private_constant :Questions
end
