# frozen_string_literal: true

module Specs
  # What came of an example.
  Result = Struct.new(:status, :file, :description, :seconds, :reason, :id) do
    # @param example [Hash] as RSpec's JSON has it
    def self.of(example)
      new(example["status"], file_of(example["id"]), example["full_description"].gsub(/\s+/, " "),
          example["run_time"].to_f, example["pending_message"], example["id"])
    end

    # Of an example that should have run, and didn't.
    def self.lost(id, why) = new("failed", file_of(id), "#{why}: #{id}", 0.0)

    # An id is a file and places in it, as "./spec/x_spec.rb[1:2]".
    def self.file_of(id) = id[%r{\A(?:\./)?([^\[]+)}, 1]

    # As RSpec's last line has it.
    def self.count(results)
      failed, pending = %w[failed pending].map { |status| results.count { |result| result.status == status } }
      "#{results.size} examples, #{failed} failures#{", #{pending} pending" if pending.positive?}"
    end

    def failed? = status == "failed"
    def to_line = "#{status}\t#{file}\t#{description}\t#{seconds.round(3)}\n"
  end
end
