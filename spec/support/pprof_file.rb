# frozen_string_literal: true

# Writes pprof files as other tools do, by the numbers of google/pprof's profile.proto: what they measure is up to the
# caller.
class PprofFile
  # As Go's runtime writes a heap profile.
  def self.go_heap
    types = { "alloc_objects" => "count", "alloc_space" => "bytes", "inuse_objects" => "count",
              "inuse_space" => "bytes" }
    new(types, default: "inuse_space")
      .sample(%w[bytes.growSlice main.main], [1_300, 1_048_576, 0, 0])
      .sample(%w[main.load main.main], [20, 9_000_000, 15, 7_250_000])
      .sample(%w[main.main], [2, 4_096, 1, 2_048])
  end

  # As stackprof's converters write it: microseconds, and no default.
  def self.stackprof
    new({ "samples" => "count", "wall" => "microseconds" })
      .sample(%w[Object#work <main>], [40, 40_123])
      .sample(%w[(marking)], [2, 2_001])
  end

  def initialize(types, default: "")
    @texts = [""]
    @functions = {}
    @types = types.map { |name, unit| message(1, number(1, text(name)) + number(2, text(unit))) }
    @default = number(14, text(default))
    @samples = []
  end

  # A sample of these functions, the leaf first.
  def sample(stack, values)
    locations = stack.map { |name| number(1, @functions[name] ||= @functions.size + 1) }
    @samples << message(2, (locations + values.map { |value| number(2, value) }).join)
    self
  end

  # @return [String] the file's bytes
  def bytes
    functions = @functions.flat_map do |name, id|
      [message(4, number(1, id) + message(4, number(1, id) + number(2, 7))),
       message(5, number(1, id) + number(2, text(name)) + number(4, text("main.go")))]
    end
    [*@types, *@samples, *functions, *@texts.map { |text| message(6, text) }, @default].join.b
  end

  private

  def text(text) = @texts.index(text) || (@texts.push(text).size - 1)

  def number(field, value) = varint(field << 3) + varint(value)

  def message(field, bytes) = varint((field << 3) | 2) + varint(bytes.bytesize) + bytes.b

  def varint(value)
    bytes = []
    while value > 0x7f
      bytes << ((value & 0x7f) | 0x80)
      value >>= 7
    end
    [*bytes, value].pack("C*")
  end
end
