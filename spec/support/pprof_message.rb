# frozen_string_literal: true

require "stringio"
require "zlib"

# A pprof file as other tools see it: read by the numbers of google/pprof's profile.proto, not by our reader.
class PprofMessage
  def self.read(path) = new(Zlib.gunzip(File.binread(path)))

  def initialize(bytes)
    @fields = fields(bytes)
    @texts = @fields[6].map { |text| text.dup.force_encoding(Encoding::UTF_8) }
  end

  def time_nanos = @fields[9].last
  def duration_nanos = @fields[10].last
  def comments = numbers(@fields[13]).map { |index| @texts[index] }
  def doc_url = @texts[@fields[15].last]

  # For each sample its labels, { key => String or Integer }.
  def labels
    @fields[2].map do |sample|
      fields(sample)[3].to_h do |label|
        label = fields(label)
        text = label[2].last.to_i
        [@texts[label[1].last], text.zero? ? label[3].last.to_i : @texts[text]]
      end
    end
  end

  private

  # { number => values }; a value is an Integer or, for texts, messages and packed numbers, a String.
  def fields(bytes)
    input = StringIO.new(bytes)
    all = Hash.new { |_, _| [] }
    until input.eof?
      key = varint(input)
      all[key >> 3] += [key & 7 == 2 ? input.read(varint(input)) : varint(input)]
    end
    all
  end

  def numbers(values)
    values.flat_map do |value|
      next value unless value.is_a?(String)

      input = StringIO.new(value)
      packed = []
      packed << varint(input) until input.eof?
      packed
    end
  end

  def varint(input)
    value = shift = 0
    loop do
      byte = input.readbyte
      value |= (byte & 0x7f) << shift
      return value if byte < 0x80

      shift += 7
    end
  end
end
