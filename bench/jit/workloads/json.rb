# frozen_string_literal: true

# JSON made and read: short calls into C, and some Ruby around them.

require "json"

RECORDS = Array.new(60) do |id|
  { "id" => id, "name" => "user #{id}", "score" => id * 1.25, "tags" => %w[new active paid].first(id % 4),
    "address" => { "street" => "Main Street #{id}", "verified" => id.even?, "note" => nil } }
end.freeze

def changed(records)
  records.map { |record| record.merge("score" => record["score"] + 1, "tags" => record["tags"].map(&:upcase)) }
end

WORKLOAD = lambda do |scale|
  (500 * scale).ceil.times { changed(JSON.parse(JSON.generate(RECORDS))) }
end
