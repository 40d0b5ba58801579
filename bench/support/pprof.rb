# frozen_string_literal: true

require "zlib"

module Bench
  # Reads the stacks of a pprof file, lines included. It shares no code with rperf, so
  # that a mistake in rperf's writer can't hide in its reader.
  class Pprof
    Frame = Data.define(:function, :file, :line, :first_line)
    # frames: leaf first; values: by sample type, such as "wall".
    Sample = Data.define(:frames, :values)

    # Numbers of fields in profile.proto.
    SAMPLE_TYPE = 1
    SAMPLE = 2
    LOCATION = 4
    FUNCTION = 5
    STRING = 6
    private_constant :SAMPLE_TYPE, :SAMPLE, :LOCATION, :FUNCTION, :STRING

    # @return [Array<Sample>]
    attr_reader :samples

    # @param path [String] a file that is compressed by gzip
    def self.read(path) = new(Zlib.gunzip(File.binread(path)))

    # @param bytes [String] the message Profile
    def initialize(bytes)
      profile = fields(bytes)
      @strings = profile[STRING].map { |text| text.dup.force_encoding(Encoding::UTF_8) }
      types = profile[SAMPLE_TYPE].map { |type| @strings.fetch(fields(type)[1].last) }
      functions = profile[FUNCTION].to_h { |function| function(fields(function)) }
      locations = profile[LOCATION].to_h { |location| location(fields(location), functions) }
      @samples = profile[SAMPLE].map do |sample|
        places, values = fields(sample).values_at(1, 2).map { |lists| numbers(lists) }
        Sample.new(places.flat_map { |id| locations.fetch(id) }, types.zip(values).to_h)
      end
    end

    private

    def function(fields)
      name, file, first_line = [2, 4, 5].map { |number| fields[number].last || 0 }
      [fields[1].last, Frame.new(@strings.fetch(name), @strings.fetch(file), 0, first_line)]
    end

    # Has several lines where calls were inlined.
    def location(fields, functions)
      lines = fields[4].map do |bytes|
        line = fields(bytes)
        functions.fetch(line[1].last).with(line: line[2].last || 0)
      end
      [fields[1].last, lines]
    end

    # @return [Hash{Integer => Array<Integer, String>}] a message's values by field number
    def fields(bytes)
      found = Hash.new { |hash, number| hash[number] = [] }
      position = 0
      while position < bytes.bytesize
        key, position = varint(bytes, position)
        value, position = varint(bytes, position)
        case key & 7
        when 0 then found[key >> 3] << value
        when 2
          found[key >> 3] << bytes.byteslice(position, value)
          position += value
        else raise "pprof files have no fields of wire type #{key & 7}"
        end
      end
      found
    end

    # A repeated field of numbers, be it packed or not.
    def numbers(values)
      values.flat_map do |value|
        next value if value.is_a?(Integer)

        position = 0
        unpacked = []
        while position < value.bytesize
          number, position = varint(value, position)
          unpacked << number
        end
        unpacked
      end
    end

    # @return [Array(Integer, Integer)] the number, and the position behind it
    def varint(bytes, position)
      number = shift = 0
      loop do
        byte = bytes.getbyte(position)
        position += 1
        number |= (byte & 127) << shift
        return [number, position] if byte < 128

        shift += 7
      end
    end
  end
end
