# frozen_string_literal: true

require "zlib"
require_relative "../../bench/support/protobuf"

# A pprof file as other tools see it: read by the numbers of google/pprof's profile.proto, not by our reader.
class PprofMessage
  include Bench::Protobuf

  def self.read(path) = new(Zlib.gunzip(File.binread(path)))

  def initialize(bytes)
    @fields = fields(bytes)
    @texts = @fields[6].map { |text| text.dup.force_encoding(Encoding::UTF_8) }
  end

  def time_nanos = @fields[9].last
  def duration_nanos = @fields[10].last
  def comments = numbers(@fields[13]).map { |index| @texts[index] }
  def doc_url = @texts[@fields[15].last]

  # The names of a sample's values.
  def types = @fields[1].map { |type| @texts[fields(type)[1].last] }

  def function_names = @fields[5].map { |function| @texts[fields(function)[2].last] }

  # For each sample its labels, { key => String or Integer }.
  def labels = @fields[2].map { |sample| labels_of(fields(sample)) }

  # For each sample its labels, and its values by type.
  def samples
    names = types
    @fields[2].map do |sample|
      sample = fields(sample)
      [labels_of(sample), names.zip(numbers(sample[2])).to_h]
    end
  end

  private

  def labels_of(sample)
    sample[3].to_h do |label|
      label = fields(label)
      text = label[2].last.to_i
      [@texts[label[1].last], text.zero? ? label[3].last.to_i : @texts[text]]
    end
  end
end
