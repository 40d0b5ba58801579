# frozen_string_literal: true

require_relative "lazy_values"

module Rperf
  # The native profile that a Hash of the API was made from, and what it held then. The Hash remembers it.
  Origin = Struct.new(:profile, :content) do
    # Has `data`, which holds `content`, remember where that is from.
    def self.note(data, profile, content)
      data.instance_variable_set(:@rperf_origin, new(profile, content))
      data
    end

    # @return [Origin, nil] what the Hash remembers
    def self.of(data) = data.instance_variable_get(:@rperf_origin)

    # Whether `data` still holds the same.
    def untouched?(data)
      data.size == content.size && content.all? { |key, value| LazyValues.kept?(data, key, value) }
    end

    # No other process could use the profile.
    def marshal_dump = nil
    def marshal_load(_nothing) = nil
  end
  private_constant :Origin
end
