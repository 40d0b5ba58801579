# frozen_string_literal: true

module Bench
  # Reads messages of protocol buffers: the fields that pprof files have. It shares no code with rperf, so that a
  # mistake in rperf's writer can't hide in its reader.
  module Protobuf
    private

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
