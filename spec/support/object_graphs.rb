# frozen_string_literal: true

require "socket"

# The graph of objects that a port sends, read in Ruby.
class ObjectGraphs
  # What a graph's object is.
  Node = Struct.new(:kind, :class_number, :bytes, :named, :others) do
    def references = named.map(&:last) + others
  end

  # Asks a port for the graph. Returns the connection, of which the head of the answer was read.
  def self.ask(path, force: false)
    socket = UNIXSocket.new(path)
    socket.write("POST /v1/heap#{"?force=1" if force} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = +""
    head << socket.readpartial(1) until head.end_with?("\r\n\r\n")
    [socket, head]
  end

  # Numbers of a session that follows objects, of a site, and of a sample.
  OF_SAMPLES = { 7 => 3, 8 => 7, 9 => 6 }.freeze

  attr_reader :nodes, :roots, :called, :names, :samples

  def initialize(bytes)
    @bytes = bytes
    @at = 8
    raise "no graph" unless bytes.start_with?("rpheap2\n")

    @count = number
    @nodes = []
    @names = [nil]
    @roots = []
    @called = {}
    @samples = []
    record until @ended
  end

  # What the class of each object is called.
  def class_names = @nodes.map { |node| node.class_number && @called[node.class_number] }

  private

  def record
    case (tag = byte)
    when 1 then @names << take(number).force_encoding("UTF-8")
    when 2 then object
    when 3 then @roots << [@names.fetch(number), number, @names.fetch(number)]
    when 4 then @called[number] = @names.fetch(number)
    when 5 then @ended = number == @nodes.sum { |it| it.references.size } || raise("references are missing")
    when 6 then @nodes.size == @count || raise("objects are missing")
    when 10 then @globals_begin = @roots.size
    when 7..9 then @samples << [tag, *Array.new(OF_SAMPLES.fetch(tag)) { number }]
    else raise "no record"
    end
  end

  def object
    own = @nodes.size
    kind = byte
    class_number = number
    bytes = number
    named = number
    others = number
    @nodes << Node.new(kind, class_number.zero? ? nil : class_number - 1, bytes,
                       Array.new(named) { [@names.fetch(number), own + difference] },
                       Array.new(others) { own + difference })
  end

  def byte = @bytes.getbyte(@at).tap { @at += 1 } || raise("ends early")

  def take(length) = @bytes.byteslice(@at, length).tap { @at += length }

  def number
    (0..).each_with_object([0]) do |place, sum|
      bits = byte
      sum[0] |= (bits & 0x7f) << (7 * place)
      return sum[0] if bits < 0x80
    end
  end

  def difference
    coded = number
    (coded >> 1) ^ -(coded & 1)
  end
end
