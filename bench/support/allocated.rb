# frozen_string_literal: true

require "tempfile"

module Bench
  # What glibc's malloc has given out. Resident memory says less: each native thread may get an arena, whose pages stay
  # when what was in them is free again.
  module Allocated
    TOTAL = /<(total|system) type="(\w+)"(?: count="\d+")? size="(\d+)"/

    class << self
      # @return [Integer, nil] KiB of this process; nil without Fiddle, or another malloc
      def kb
        functions = @functions ||= find
        functions && (bytes(functions) / 1024)
      end

      private

      def find
        require "fiddle"
        library = Fiddle.dlopen(nil)
        text = Fiddle::TYPE_CONST_STRING
        number = Fiddle::TYPE_INT
        pointer = Fiddle::TYPE_VOIDP
        { "fopen" => [[text, text], pointer], "malloc_info" => [[number, pointer], number],
          "fclose" => [[pointer], number] }.map do |name, (arguments, result)|
          Fiddle::Function.new(library[name], arguments, result)
        end
      rescue LoadError, Fiddle::DLError
        nil
      end

      # What the system has given, without what is free.
      def bytes((open, info, close))
        Tempfile.create("rperf-bench") do |file|
          stream = open.call(file.path, "w")
          info.call(0, stream)
          close.call(stream)
          found = file.read.split("</heap>").last.scan(TOTAL).to_h { |kind, type, size| [[kind, type], size.to_i] }
          current, mapped = found.values_at(%w[system current], %w[total mmap])
          current + mapped - found.values_at(%w[total fast], %w[total rest]).sum
        end
      end
    end
  end
end
