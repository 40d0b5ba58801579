# frozen_string_literal: true

# Allocates without pause and keeps a part of it: the collector runs all the time.

Record = Struct.new(:name, :tags, :previous)

def build(number, previous)
  Record.new("record #{number}", Array.new(4) { |index| "tag-#{index}" }, previous)
end

def keep(kept, record) = kept[record.name.hash % kept.size] = record

WORKLOAD = lambda do |scale|
  kept = Array.new(30_000)
  (450_000 * scale).ceil.times do |number|
    record = build(number, nil)
    keep(kept, record) if (number % 8).zero?
  end
end
