# frozen_string_literal: true

module Rperf
  # The keywords that choose what of a profile is looked at, those of `rperf report`, as the native half takes them.
  module Filters
    class << self
      # @return [Hash{Symbol => String, Array<String>, Integer}] without those that are nil
      # @raise [ArgumentError] for one that isn't allowed
      def of(focus: nil, ignore: nil, hide: nil, show: nil, show_from: nil, tagfocus: nil, tagignore: nil,
             tagroot: nil, tagleaf: nil, thread: nil, pid: nil, value: nil)
        patterns = { focus:, ignore:, hide:, show:, show_from: }.compact.to_h { |key, it| [key, pattern(key, it)] }
        tags = { tagfocus:, tagignore: }.compact.to_h { |key, it| [key, text(key, it, "a String as 'KEY=REGEX'")] }
        keys = { tagroot:, tagleaf: }.compact.to_h { |key, it| [key, label_keys(key, it)] }
        others = { thread: thread(thread), pid: pid(pid), value: value(value) }.compact
        { **patterns, **tags, **keys, **others }
      end

      # A regular expression as the native half reads it. It knows no lookaround, and none of Ruby's own escapes.
      def pattern(name, value)
        case value
        when Regexp then regexp(value)
        else text(name, value, "a String or a Regexp")
        end
      end

      # @return [String] in UTF-8
      def text(name, value, allowed)
        text = case value
               when String then value.encode(Encoding::UTF_8)
               when Symbol then value.name.encode(Encoding::UTF_8)
               end
        return text if text&.valid_encoding?

        reject(name, value, allowed)
      rescue EncodingError
        reject(name, value, "text")
      end

      def reject(name, value, allowed)
        raise ArgumentError, "#{name}: must be #{allowed}, not #{Options.shown(value)}"
      end

      private

      # What Ruby calls m is s elsewhere.
      def regexp(value)
        flags = { Regexp::IGNORECASE => "i", Regexp::MULTILINE => "s", Regexp::EXTENDED => "x" }
        flags = flags.filter_map { |option, flag| flag if value.options.anybits?(option) }.join
        # A comment may be the last thing in it.
        ending = flags.include?("x") ? "\n" : ""
        "(?#{flags}:#{text(:pattern, value.source, "text")}#{ending})"
      end

      def label_keys(name, value)
        keys = Options.a?(value, Array) ? value : [value]
        keys.map { |key| text(name, key, "the key of a label, or an Array of keys") }
      end

      def thread(value)
        case value
        when nil, Integer then value&.to_s
        else pattern(:thread, value)
        end
      end

      def pid(value)
        return value if nil.equal?(value) || (Options.a?(value, Integer) && (0..0xffff_ffff).cover?(value))

        reject(:pid, value, "the number of a process")
      end

      def value(value)
        case value
        when nil, Integer then value&.to_s
        else text(:value, value, "the name or number of the values")
        end
      end
    end
  end
  private_constant :Filters
end
