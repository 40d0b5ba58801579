# frozen_string_literal: true

require "zlib"
require_relative "protobuf"

module Bench
  # Reads the stacks of a pprof file, lines included. It shares no code with rperf, so
  # that a mistake in rperf's writer can't hide in its reader.
  class Pprof
    include Protobuf

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
  end
end
